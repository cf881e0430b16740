package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"strait.io/strait/cli/kernel"
	"strait.io/strait/datapath/socklb/inspect"
	"strait.io/strait/internal/l4"
)

// fakePins are directories of pins, by path, as a kernel for tests.
type fakePins map[string]*fakeNode

// fakeNode is what one directory of pins holds. With broken, it can be opened and not read.
type fakeNode struct {
	services []inspect.ServiceRow
	backends []inspect.BackendRow
	slots    []inspect.SlotRow
	affinity []inspect.AffinityRow
	sockets  []inspect.SocketRow
	broken   error
	// byHand and byDaemon are the opt-outs.
	byHand, byDaemon []string
	open             int
}

func (n *fakeNode) Services() ([]inspect.ServiceRow, error) { return n.services, n.broken }

func (n *fakeNode) Backends() ([]inspect.BackendRow, error) { return n.backends, n.broken }

func (n *fakeNode) Slots() ([]inspect.SlotRow, error) { return n.slots, n.broken }

func (n *fakeNode) Affinity() ([]inspect.AffinityRow, error) { return n.affinity, n.broken }

func (n *fakeNode) Sockets() ([]inspect.SocketRow, error) { return n.sockets, n.broken }

func (n *fakeNode) Close() { n.open-- }

func (p fakePins) find(dir string) (*fakeNode, error) {
	switch n := p[dir]; {
	case n == nil:
		return nil, fmt.Errorf("open %s: %w", dir, fs.ErrNotExist)
	case n.open < 0:
		return nil, fmt.Errorf("open %s: %w: run as root", dir, fs.ErrPermission)
	default:
		return n, nil
	}
}

func (p fakePins) kernel() kernel.Kernel {
	return kernel.Kernel{
		Open: func(pins string) (kernel.PinnedMaps, error) {
			n, err := p.find(pins)
			if err != nil {
				return nil, err
			}
			n.open++
			return n, nil
		},
		OptOuts: func(pins string) ([]string, error) {
			n, err := p.find(pins)
			if err != nil {
				return nil, err
			}
			return slices.Concat(n.byHand, n.byDaemon), nil
		},
		CheckOptOut: func(string) error { return nil },
		AddOptOut: func(pins, cgroup string) error {
			n, err := p.find(pins)
			if err == nil {
				n.byHand = append(n.byHand, cgroup)
			}
			return err
		},
		RemoveOptOut: func(pins, cgroup string) error {
			n, err := p.find(pins)
			if err == nil {
				n.byHand = slices.DeleteFunc(n.byHand, func(c string) bool { return c == cgroup })
			}
			return err
		},
	}
}

// wellPins are pins that fit wellView, and a frontend that its services do not have. Others are empty, are
// closed to this user, or cannot be read.
func wellPins() fakePins {
	http, dns, far := frontend("241.7.3.9:80/TCP"), frontend("241.7.3.9:53/UDP"), frontend("241.200.1.1:80/TCP")
	six := frontend("[fd00::9]:80/TCP")
	b, c, x := addrPort("10.1.1.12:8080"), addrPort("10.1.1.13:8080"), addrPort("10.3.0.21:8080")
	flow := func(a l4.Addr) inspect.SocketRow { return inspect.SocketRow{Proto: a.Proto, Frontend: addrPortOf(a)} }
	toB, toX, spilled := flow(http), flow(far), flow(dns)
	toB.Cookie, toB.Backend, toB.Connected = 4711, b, true
	toX.Cookie, toX.Backend, toX.Connected = 4096, x, true
	spilled.Cookie, spilled.Backend, spilled.Overflow = 4711, c, true
	return fakePins{
		inspect.DefaultPins: {
			services: []inspect.ServiceRow{
				{Addr: dns, Index: 1, Base: 2, Count: 2, AffinitySeconds: 10800, Connects: 18446744073709551615},
				{Addr: http, Index: 0, Base: 0, Count: 2, Connects: 12345, Refused: 6},
				{Addr: far, Index: 2, Base: 4, Count: 1}, {Addr: six, Index: 3}},
			backends: []inspect.BackendRow{{Frontend: dns, Backend: b, Weight: 65536, Connects: 1}, {Frontend: dns, Backend: c, Weight: 1},
				{Frontend: http, Backend: b, Weight: 65536, Connects: 6173}, {Frontend: http, Backend: c, Weight: 65536, Connects: 6172},
				{Frontend: far, Backend: x, Weight: 32768}},
			slots: []inspect.SlotRow{{Slot: 0, Frontend: http, Backend: b, Threshold: 1<<32 - 1}, {Slot: 1, Frontend: http, Backend: c, Threshold: 1 << 31},
				{Slot: 2, Frontend: dns, Backend: b, Threshold: 1<<32 - 1}, {Slot: 3, Frontend: dns, Backend: c, Threshold: 131070},
				{Slot: 4, Frontend: far, Backend: x, Threshold: 1<<32 - 1, Alias: 1}},
			affinity: []inspect.AffinityRow{{Frontend: dns, Client: 4097, Backend: b, IdleSeconds: 0.31},
				{Frontend: dns, Client: 20481, Backend: c, IdleSeconds: 10800.5}, {Frontend: far, Client: 4097, Backend: x, IdleSeconds: 372}},
			sockets: []inspect.SocketRow{toX, toB, spilled},
			byHand:  []string{"/nonexistent/gone.service"},
		},
		"/pins/empty":  {},
		"/pins/broken": {broken: errors.New("maps change faster than they can be read"), services: []inspect.ServiceRow{{Addr: http}}},
		"/pins/closed": {open: -1},
	}
}

// fakeCgroup is a directory that looks like a cgroup v2 one with two processes, and one more below it.
func fakeCgroup(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "proxy.service")
	for path, text := range map[string]string{"cgroup.controllers": "", "cgroup.procs": "12\n13\n",
		"worker/cgroup.controllers": "", "worker/cgroup.procs": "14\n"} {
		file := filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func addrPortOf(a l4.Addr) netip.AddrPort { return netip.AddrPortFrom(a.IP, a.Port) }
