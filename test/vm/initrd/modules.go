package initrd

import (
	"bytes"
	"debug/elf"
	"fmt"
	"slices"
	"strings"
)

// Module is a kernel module as a file.
type Module struct {
	Name string
	Data []byte
}

// ModuleName returns the kernel's name for the module in a file: nft_masq for "nft-masq.ko.xz". It
// returns "" if the file is not a module.
func ModuleName(file string) string {
	name, rest, ok := strings.Cut(file, ".ko")
	if !ok || rest != "" && !strings.HasPrefix(rest, ".") {
		return ""
	}
	return strings.ReplaceAll(name, "-", "_")
}

// Modules returns the wanted modules and their dependencies, in load order. load returns a module's
// file by the kernel's name, or nil if there is no file: the module is then built in or missing.
// absent lists the wanted modules without a file. A dependency without a file is not listed: if it
// is missing, the kernel reports it when it loads the module that needs it.
func Modules(want []string, load func(name string) ([]byte, error)) (order []Module, absent []string, err error) {
	seen := map[string]bool{}
	var add func(name string) error
	add = func(name string) error {
		name = strings.ReplaceAll(name, "-", "_")
		if seen[name] {
			return nil
		}
		seen[name] = true
		data, err := load(name)
		if err != nil {
			return fmt.Errorf("kernel module %s: %w", name, err)
		}
		if data == nil {
			if slices.Contains(want, name) {
				absent = append(absent, name)
			}
			return nil
		}
		needs, err := depends(data)
		if err != nil {
			return fmt.Errorf("kernel module %s: %w", name, err)
		}
		for _, n := range needs {
			if err := add(n); err != nil {
				return err
			}
		}
		order = append(order, Module{Name: name, Data: data})
		return nil
	}
	for _, name := range want {
		if err := add(name); err != nil {
			return nil, nil, err
		}
	}
	return order, absent, nil
}

// depends reads a module's dependencies from the module itself, because Debian's packages have no
// modules.dep.
func depends(module []byte) ([]string, error) {
	f, err := elf.NewFile(bytes.NewReader(module))
	if err != nil {
		return nil, err
	}
	info := f.Section(".modinfo")
	if info == nil {
		return nil, fmt.Errorf("the file is not a kernel module: it has no section .modinfo")
	}
	text, err := info.Data()
	if err != nil {
		return nil, err
	}
	return dependsOf(string(text)), nil
}

// dependsOf finds "depends=a,b" and "softdep=pre: c" between the zero bytes of .modinfo.
func dependsOf(info string) (names []string) {
	for field := range strings.SplitSeq(info, "\x00") {
		if list, ok := strings.CutPrefix(field, "depends="); ok && list != "" {
			names = append(names, strings.Split(list, ",")...)
		}
		if list, ok := strings.CutPrefix(field, "softdep=pre:"); ok {
			before, _, _ := strings.Cut(list, "post:")
			names = append(names, strings.Fields(before)...)
		}
	}
	return names
}
