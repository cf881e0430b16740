package faults

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/internal/problem"
	"strait.io/strait/internal/testutil"
)

// newPair makes the nodes n1 and n2 of cluster c1, and n1 of c2.
func newPair(t *testing.T) *ill { return newNamed(t, "c1/n1", "c1/n2", "c2/n1") }

// newNamed makes machines that are these nodes. Those of one cluster have the same Node objects.
func newNamed(t *testing.T, names ...string) *ill {
	t.Helper()
	w := newIll(t, len(names))
	nodes := map[string]string{}
	for i, m := range w.machines {
		cluster, name, _ := strings.Cut(names[i], "/")
		m.config["cluster"], m.config["node"] = cluster, name
		nodes[cluster] += node(name, m.addr()) + "---\n"
		w.edit(m, "manifests/serve.yaml", "nodeName: n1", "nodeName: "+name)
	}
	for _, m := range w.machines {
		m.write(t, "manifests/node.yaml", nodes[m.config["cluster"].(string)])
	}
	pinned(t, w.machines)
	return w
}

// newLate makes two machines that run, and one that does not yet.
func newLate(t *testing.T) *ill {
	w := newIll(t, 3)
	w.late[w.machines[2]] = true
	return w
}

// newClocked makes three machines, each with a clock of its own.
func newClocked(t *testing.T) *ill {
	w := newIll(t, 3)
	for _, m := range w.machines {
		m.clock = testutil.NewClock(t)
	}
	return w
}

// newOpen makes three machines that trust every holder of the gossip key.
func newOpen(t *testing.T) *ill {
	w := newIll(t, 3)
	for _, m := range w.machines {
		m.config["authority"] = tree{"mode": "off"}
	}
	return w
}

// newKeyed makes two machines, each with a file of its own for the gossip key.
func newKeyed(t *testing.T) *ill {
	t.Helper()
	w := newIll(t, 2)
	m := w.machines[1]
	m.write(t, "gossip.key", w.machines[0].read(t, "gossip.key"))
	m.config["gossip"].(tree)["keyFile"] = m.path("gossip.key")
	return w
}

// newStated makes n1 of c1, and n1 and n2 of c2, each with a clock of its own. The last has no root: n1 states
// who it is.
func newStated(t *testing.T) *ill {
	t.Helper()
	w := newNamed(t, "c1/n1", "c2/n1", "c2/n2")
	for _, m := range w.machines {
		m.clock = testutil.NewClock(t)
	}
	signer, m := w.machines[1], w.machines[2]
	delete(m.config["authority"].(tree), "rootFile")
	signer.write(t, "manifests/node.yaml", node("n1", signer.addr()))
	signer.write(t, "manifests/n2.yaml", node("n2", m.addr()))
	for _, x := range w.machines {
		w.start(x)
	}
	testutil.Eventually(t, patience, func() error {
		s, err := w.lives[m].status()
		if err != nil {
			return err
		}
		for _, p := range s.Problems {
			if said := regexp.MustCompile(`SHA256:\S+`).FindString(p.Message); p.Code == problem.StatementMissing && said != "" {
				signer.write(t, "manifests/n2.yaml", annotated(node("n2", m.addr()), "strait.io/node-key", said))
				return nil
			}
		}
		return fmt.Errorf("the machine without the root does not show its key: %v", s.Problems)
	})
	return w
}

// annotated is a node with an annotation.
func annotated(node, key, value string) string {
	return regexp.MustCompile(`metadata: \{name: (\w+)\}`).ReplaceAllString(node, fmt.Sprintf("metadata: {name: $1, annotations: {%s: %q}}", key, value))
}

// repin changes the pins of a machine.
func (w *ill) repin(m *machine, change func(authority.Pins)) {
	w.Helper()
	pins, err := authority.ParsePins([]byte(m.read(w.T, "pins.yaml")))
	must(w.T, err)
	change(pins)
	m.write(w.T, "pins.yaml", string(pins.Encode()))
}

// announce has a machine announce a range of pods, from its next start on.
func (w *ill) announce(m *machine, prefix string) {
	w.Helper()
	m.config["nodePrefixes"] = []string{prefix}
	pod := netip.MustParsePrefix(prefix).Addr().Next().String()
	w.lives[m].stop(w.T)
	m.write(w.T, "manifests/serve.yaml", strings.ReplaceAll(service("serve"), "10.9.9.9", pod))
	w.start(m)
}

// name gives the node of a machine a name.
func (w *ill) name(m *machine, name string) {
	w.Helper()
	m.config["node"] = name
	m.write(w.T, "manifests/node.yaml", node(name, m.addr()))
	m.write(w.T, "manifests/serve.yaml", strings.NewReplacer("10.9.9.9", fmt.Sprintf("10.9.%d.9", m.number), "nodeName: n1", "nodeName: "+name).Replace(service("serve")))
}

// narrow drops the packets of tunnels to a machine that are larger than so many bytes, and no ICMP says so.
func (w *ill) narrow(m *machine, mtu int) {
	w.Helper()
	w.nft(m, fmt.Sprintf(`table inet narrow {
		chain in { type filter hook input priority -300; meta l4proto udp meta length > %d drop; }
	}`, mtu))
}

// passes lets time pass for all machines, until those that can sign for themselves have done so again. What is
// measured begins with it.
func (w *ill) passes(d time.Duration) {
	w.Helper()
	w.began = time.Now()
	for _, m := range w.machines {
		w.passed[m] += d
		m.clock.Passes(w.passed[m])
	}
	for _, m := range w.machines {
		if m.config["authority"].(tree)["rootFile"] == nil {
			continue
		}
		testutil.Eventually(w, patience, func() error {
			s, err := w.lives[m].status()
			if err == nil && s.StatementEnds.Sub(s.Time) < 23*time.Hour {
				err = fmt.Errorf("machine %d: its statement ends in %s", m.number, s.StatementEnds.Sub(s.Time))
			}
			return err
		})
	}
}

// number reads a number of a message.
func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	must(t, err)
	return n
}

// cable plugs a machine in ("up") or out ("down").
func (w *ill) cable(m *machine, to string) {
	w.Helper()
	port, err := netlink.LinkByName(fmt.Sprintf("port%d", m.number))
	must(w.T, err)
	if to == "up" {
		must(w.T, netlink.LinkSetUp(port))
	} else {
		must(w.T, netlink.LinkSetDown(port))
	}
}

// strait runs a command of strait's to its end.
func (w *ill) strait(args ...string) {
	w.Helper()
	dir, err := programs()
	must(w.T, err)
	_, err = command(w.machines[0].ns, "", append([]string{filepath.Join(dir, "strait")}, args...)...)
	must(w.T, err)
}

// foreign attaches a program in front of strait's at the first machine.
func (w *ill) foreign() {
	w.Helper()
	p, err := permit()
	must(w.T, err)
	cgroup, err := os.Open(w.machines[0].cgroup)
	must(w.T, err)
	w.Cleanup(func() {
		p.Close()
		cgroup.Close()
	})
	err = link.RawAttachProgram(link.RawAttachProgramOptions{Target: int(cgroup.Fd()), Program: p, Attach: ebpf.AttachCGroupInet4Connect,
		Flags: unix.BPF_F_ALLOW_MULTI, Anchor: link.Head()})
	if errors.Is(err, unix.EINVAL) || errors.Is(err, ebpf.ErrNotSupported) {
		w.Skipf("this kernel has no order of programs: %v", err)
	}
	must(w.T, err)
	w.undo = func() {
		w.Helper()
		must(w.T, link.RawDetachProgram(link.RawDetachProgramOptions{Target: int(cgroup.Fd()), Program: p, Attach: ebpf.AttachCGroupInet4Connect}))
	}
}

// set sets a field of a config, by its path.
func set(config tree, path string, value any) {
	parts := strings.Split(path, ".")
	for _, p := range parts[:len(parts)-1] {
		config = config[p].(tree)
	}
	config[parts[len(parts)-1]] = value
}
