// Package initrd makes the initramfs of a test VM: an archive in the kernel's format (newc cpio),
// and the kernel modules that go into it, in load order.
//
// Input and output are bytes: root, depmod and initramfs-tools are not needed. It must not know
// where kernels come from or what is tested.
package initrd

import (
	"bytes"
	"fmt"
	"path"
)

// File types and permissions, as in stat(2).
const (
	modeDir  = 0o040755
	modeLink = 0o120777
	modeFile = 0o100644
	modeExec = 0o100755
)

// Archive is an initramfs that is being built. The zero value is empty and ready to use.
type Archive struct {
	out   bytes.Buffer
	inode int
	made  map[string]bool
}

// Dir adds a directory and those above it.
func (a *Archive) Dir(name string) {
	if name = path.Clean(name); name == "." || name == "/" || a.made[name] {
		return
	}
	a.Dir(path.Dir(name))
	if a.made == nil {
		a.made = map[string]bool{}
	}
	a.made[name] = true
	a.entry(name, modeDir, nil)
}

// File adds a file and the directories above it.
func (a *Archive) File(name string, data []byte) { a.file(name, modeFile, data) }

// Program adds an executable file and the directories above it.
func (a *Archive) Program(name string, data []byte) { a.file(name, modeExec, data) }

// Link adds a symbolic link and the directories above it.
func (a *Archive) Link(name, target string) { a.file(name, modeLink, []byte(target)) }

func (a *Archive) file(name string, mode uint32, data []byte) {
	a.Dir(path.Dir(name))
	a.entry(name, mode, data)
}

// Bytes returns the finished archive. The kernel reads several archives one after another, so the
// result can be appended to another archive: the part that is the same for each VM is made once.
func (a *Archive) Bytes() []byte {
	end := *a
	end.out = bytes.Buffer{}
	end.out.Write(a.out.Bytes())
	end.entry("TRAILER!!!", 0, nil)
	return end.out.Bytes()
}

// entry writes a header of 110 characters, the name and the data, padded to 4 bytes. The kernel's
// Documentation/driver-api/early-userspace/buffer-format.rst specifies the format.
func (a *Archive) entry(name string, mode uint32, data []byte) {
	a.inode++
	fmt.Fprintf(&a.out, "070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x",
		a.inode, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name)+1, 0)
	a.out.WriteString(name + "\x00")
	a.pad()
	a.out.Write(data)
	a.pad()
}

func (a *Archive) pad() {
	for a.out.Len()%4 != 0 {
		a.out.WriteByte(0)
	}
}
