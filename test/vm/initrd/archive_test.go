package initrd

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// item is what a reader of the format finds.
type item struct {
	mode uint32
	data string
}

// read is the format from the reader's side, by the kernel's description of it.
func read(t *testing.T, b []byte) (names []string, items map[string]item) {
	t.Helper()
	items = map[string]item{}
	for at := 0; ; {
		if at%4 != 0 || at+110 > len(b) {
			t.Fatalf("header at %d of %d", at, len(b))
		}
		var magic string
		var f [13]uint32
		if _, err := fmt.Sscanf(string(b[at:at+6]), "%s", &magic); err != nil || magic != "070701" {
			t.Fatalf("magic %q at %d: %v", magic, at, err)
		}
		for i := range f {
			if _, err := fmt.Sscanf(string(b[at+6+8*i:at+14+8*i]), "%x", &f[i]); err != nil {
				t.Fatal(err)
			}
		}
		name := string(b[at+110 : at+110+int(f[11])-1])
		data := (at + 110 + int(f[11]) + 3) &^ 3
		if name == "TRAILER!!!" {
			return names, items
		}
		names = append(names, name)
		items[name] = item{f[1], string(b[data : data+int(f[6])])}
		at = (data + int(f[6]) + 3) &^ 3
	}
}

func TestArchive(t *testing.T) {
	var a Archive
	a.Dir("proc")
	a.Program("tests/a/b/run.test", []byte("12345"))
	a.File("tests/a/data", nil)
	a.Link("var/run", "/run")
	got := a.Bytes()
	names, items := read(t, got)
	if want := "proc tests tests/a tests/a/b tests/a/b/run.test tests/a/data var var/run"; strings.Join(names, " ") != want {
		t.Errorf("names %v, want %s: each folder once, before what is in it", names, want)
	}
	for name, want := range map[string]item{
		"proc":               {0o040755, ""},
		"tests/a/b/run.test": {0o100755, "12345"},
		"tests/a/data":       {0o100644, ""},
		"var/run":            {0o120777, "/run"},
	} {
		if items[name] != want {
			t.Errorf("%s is %o %q, want %o %q", name, items[name].mode, items[name].data, want.mode, want.data)
		}
	}
	if len(got)%4 != 0 {
		t.Errorf("%d bytes: another archive could not follow", len(got))
	}
	a.File("more", []byte("x"))
	if names, _ := read(t, a.Bytes()); names[len(names)-1] != "more" {
		t.Error("Bytes ended the archive for good")
	}
}

// TestCpioReadsIt: another program's reading of the format.
func TestCpioReadsIt(t *testing.T) {
	cpio, err := exec.LookPath("cpio")
	if err != nil {
		t.Log("no cpio here: TestArchive reads the format by its description")
		return
	}
	var a Archive
	a.File("a/b", []byte("hello"))
	c := exec.Command(cpio, "-idm", "--quiet")
	c.Dir, c.Stdin = t.TempDir(), bytes.NewReader(a.Bytes())
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if b, err := os.ReadFile(filepath.Join(c.Dir, "a/b")); err != nil || string(b) != "hello" {
		t.Errorf("%q, %v", b, err)
	}
}

func TestModuleName(t *testing.T) {
	for file, want := range map[string]string{
		"wireguard.ko": "wireguard", "nft_chain-nat.ko.xz": "nft_chain_nat", "modules.dep": "", "a.kompass": "", "vmlinuz": "",
	} {
		if got := ModuleName(file); got != want {
			t.Errorf("%s: %q, want %q", file, got, want)
		}
	}
}

func TestDependsOf(t *testing.T) {
	info := "license=GPL\x00depends=udp_tunnel,ip6_udp_tunnel\x00softdep=pre: crc32c post: x\x00name=wireguard\x00"
	if got := fmt.Sprint(dependsOf(info)); got != "[udp_tunnel ip6_udp_tunnel crc32c]" {
		t.Error(got)
	}
	if got := dependsOf("depends=\x00"); got != nil {
		t.Error(got)
	}
}

func TestModulesOrder(t *testing.T) {
	files := map[string][]byte{}
	for name, depends := range map[string]string{"wireguard": "udp-tunnel,curve", "udp_tunnel": "", "curve": "udp_tunnel,builtin", "veth": ""} {
		files[name] = module("depends=" + depends + "\x00")
	}
	order, absent, err := Modules([]string{"wireguard", "veth", "curve", "nosuch"}, func(name string) ([]byte, error) { return files[name], nil })
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range order {
		names = append(names, m.Name)
	}
	if got := strings.Join(names, " "); got != "udp_tunnel curve wireguard veth" {
		t.Errorf("order %s", got)
	}
	if fmt.Sprint(absent) != "[nosuch]" {
		t.Errorf("absent %v: what was not asked for is the kernel's business", absent)
	}
	if _, _, err := Modules([]string{"a"}, func(string) ([]byte, error) { return nil, errors.New("disk") }); err == nil || !strings.Contains(err.Error(), "kernel module a: disk") {
		t.Errorf("error %v", err)
	}
	if _, _, err := Modules([]string{"a"}, func(string) ([]byte, error) { return []byte("text"), nil }); err == nil {
		t.Error("a text file is no module")
	}
}

// module is the smallest ELF file with a section .modinfo.
func module(info string) []byte {
	const header, entry = 64, 64
	names := "\x00.modinfo\x00.shstrtab\x00"
	b := make([]byte, header+3*entry)
	copy(b, "\x7fELF\x02\x01\x01")
	put := func(at, size int, v uint64) {
		for i := range size {
			b[at+i] = byte(v >> (8 * i))
		}
	}
	put(16, 2, 1)      // relocatable
	put(18, 2, 62)     // x86-64
	put(20, 4, 1)      // version
	put(40, 8, header) // section headers
	put(52, 2, header) // size of this header
	put(58, 2, entry)  // size of a section's
	put(60, 2, 3)      // sections
	put(62, 2, 2)      // the one of names
	section := func(i int, name, kind uint64, data string) {
		at := header + i*entry
		put(at, 4, name)
		put(at+4, 4, kind)
		put(at+24, 8, uint64(len(b)))
		put(at+32, 8, uint64(len(data)))
		b = append(b, data...)
	}
	section(1, 1, 1, info)
	section(2, 10, 3, names)
	return b
}
