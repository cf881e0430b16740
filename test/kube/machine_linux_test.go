package kube

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"

	"strait.io/strait/test/kubelab"
)

// machine is what can be seen of this machine, of all that a lab could leave: things by kind and name.
type machine map[string]bool

// ours is in the names of what the programs of a node make there: the machine's other programs make
// files at any time.
var ours = regexp.MustCompile(`kube|containerd|runc|cni|nri|etcd|pods|strait|lab`)

// look lists them. Other tests run on the same machine, so where names tell, only those of a lab
// count: any lab's before, and the lab's own after.
func look(l *kubelab.Lab) (machine, error) {
	m := machine{}
	for _, dir := range []string{"/run", "/var/lib", "/var/log", "/etc", "/opt", "/sys/fs/bpf"} {
		entries, err := os.ReadDir(dir)
		if err != nil && !os.IsNotExist(err) {
			return nil, err
		}
		for _, e := range entries {
			if dir == "/sys/fs/bpf" || ours.MatchString(e.Name()) {
				m["file "+filepath.Join(dir, e.Name())] = true
			}
		}
	}
	links, err := netlink.LinkList()
	if err != nil {
		return nil, err
	}
	for _, link := range links {
		m["link "+link.Attrs().Name] = true
	}
	if l == nil {
		return m, nil
	}
	return m, m.add(l)
}

// add lists what bears the lab's name.
func (m machine) add(l *kubelab.Lab) error {
	if _, err := os.Stat(l.Dir); err == nil {
		m["file "+l.Dir] = true
	}
	info, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(info)) {
		if bears(line, l) {
			m["mount "+strings.Fields(line)[4]] = true
		}
	}
	named, err := filepath.Glob("/run/netns/" + l.Name + "*")
	if err != nil {
		return err
	}
	for _, f := range named {
		m["namespace "+f] = true
	}
	err = filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && strings.Contains(d.Name(), l.Name) {
			m["cgroup "+path] = true
			return fs.SkipDir
		}
		return nil
	})
	if err != nil {
		return err
	}
	commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return err
	}
	for _, f := range commands {
		// Processes come and go.
		b, err := os.ReadFile(f)
		if line := strings.ReplaceAll(string(b), "\x00", " "); err == nil && bears(line, l) {
			m["process "+line] = true
		}
	}
	return nil
}

// bears reports whether a line names a lab or what is in its folder. The folder of another lab can begin with
// the same words.
func bears(line string, l *kubelab.Lab) bool {
	return strings.Contains(line, l.Name) || strings.Contains(line+" ", l.Dir+" ") || strings.Contains(line, l.Dir+"/")
}

// compare says what is here that was not before.
func (m machine) compare(before machine) error {
	var more []string
	for _, what := range slices.Sorted(maps.Keys(m)) {
		if !before[what] && !strings.HasPrefix(filepath.Base(what), "strait-t-") {
			more = append(more, what)
		}
	}
	if len(more) > 0 {
		return fmt.Errorf("the lab left behind:\n  %s", strings.Join(more, "\n  "))
	}
	return nil
}
