package socklb

import (
	"bufio"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"strait.io/strait/datapath"
	"strait.io/strait/internal/l4"
	"strait.io/strait/internal/testutil"
)

// hostileEnv makes a process hostile; it holds the family's number and the VIP's address.
const hostileEnv = "STRAIT_TEST_HOSTILE"

// hostilePorts are the frontends that are attacked, from 1000; the victim's is 80.
const hostilePorts = 40

// TestHostilePod: one pod, without privileges, opens sockets of all kinds as fast as it can. Others are always shown the
// frontend that they asked: with sockets that are older, and with new ones, before, during and after. Then nothing is left
// of what the pod did, or what a sweep frees.
func TestHostilePod(t *testing.T) {
	if !insideParallel(t) {
		return
	}
	cfg := config(t)
	l := opened(t, cfg)
	f := families[0]
	stream, dgram := echo(t, l4.TCP, netip.AddrPortFrom(f.pod, 0)), echo(t, l4.UDP, netip.AddrPortFrom(f.pod, 0))
	fronts := []datapath.Frontend{{Addr: l4.New(f.vip, 80, l4.TCP), Backends: one(stream)}, {Addr: l4.New(f.vip, 80, l4.UDP), Backends: one(dgram)}}
	for port := range uint16(hostilePorts) {
		fronts = append(fronts, datapath.Frontend{Addr: l4.New(f.vip, 1000+port, l4.UDP), Backends: one(netip.AddrPortFrom(f.pod, 9))})
	}
	fronts = append(fronts, datapath.Frontend{Addr: l4.New(f.vip, 1000, l4.TCP), Backends: one(stream)})
	reconcile(t, l, fronts...)
	v := newVictim(t, f)
	v.check("before")
	stop := attack(t, f)
	until := time.Now().Add(time.Duration(testutil.Rounds(60, 3)) * time.Second)
	for time.Now().Before(until) && !t.Failed() {
		v.check("during")
	}
	made := stop()
	v.check("after")
	home, stored := countRecords(t, l)
	t.Logf("the pod made %s; the victim checked %d answers; %d homes are taken, %d records stored", made, v.checks, home, stored)
	// An idle machine manages 70,000. A busy one leaves the victim little between the pod's loops.
	if v.checks < testutil.Rounds(100, 20) {
		t.Error("too few to tell")
	}
	v.close()
	if !has(l.features, featureMPTCP) {
		return
	}
	left := 0
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		home, stored := countRecords(t, l)
		if left = home + stored; left == 0 {
			return
		}
	}
	// The daemon's sweep frees what a socket that is gone has left. More than a few would be a leak.
	owners, err := l.Owners()
	if err != nil || left > 3 {
		t.Errorf("every socket is closed, and %d records are left, of sockets %x (%v)", left, owners, err)
	}
	t.Logf("every socket is closed, and %d records are left, of sockets %x", left, owners)
	if err := l.Forget(owners); err != nil {
		t.Fatal(err)
	}
	if home, stored := countRecords(t, l); home+stored > 0 {
		t.Errorf("after a sweep, %d homes are taken and %d records stored", home, stored)
	}
}

// victim has one socket of each kind from before the attack.
type victim struct {
	t                        *testing.T
	f                        family
	vip                      netip.AddrPort
	stream, connected, loose *client
	checks                   int
}

func newVictim(t *testing.T, f family) *victim {
	v := &victim{t: t, f: f, vip: netip.AddrPortFrom(f.vip, 80)}
	v.stream, v.connected, v.loose = v.sockets()
	return v
}

func (v *victim) sockets() (stream, connected, loose *client) {
	stream, connected = newClient(v.t, v.f, unix.SOCK_STREAM), newClient(v.t, v.f, unix.SOCK_DGRAM)
	for _, c := range []*client{stream, connected} {
		if err := c.connect(v.vip); err != nil {
			v.t.Fatal(err)
		}
	}
	return stream, connected, newClient(v.t, v.f, unix.SOCK_DGRAM)
}

func (v *victim) close() {
	for _, c := range []*client{v.stream, v.connected, v.loose} {
		c.close()
	}
}

// check talks through the old sockets, and through new ones.
func (v *victim) check(when string) {
	fresh := &victim{t: v.t, f: v.f, vip: v.vip}
	fresh.stream, fresh.connected, fresh.loose = fresh.sockets()
	defer fresh.close()
	for _, v := range []*victim{v, fresh} {
		for _, talk := range []conversation{{v.stream, v.vip, true, true}, {v.connected, v.vip, true, false}, {v.loose, v.vip, false, false}} {
			talk.goesOn(v.t, when)
		}
	}
	v.checks += 6
}

// attack starts the hostile process. The returned function ends it and returns what it made.
func attack(t *testing.T, f family) (stop func() string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestHostile$")
	cmd.Env = append(os.Environ(), hostileEnv+"="+f.vip.String())
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// As fast as it can, but not at the expense of other tests.
	if err := unix.Setpriority(unix.PRIO_PGRP, cmd.Process.Pid, 19); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatal("the hostile process does not start")
	}
	return func() string {
		in.Close()
		lines.Scan()
		made := lines.Text()
		for lines.Scan() {
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("the hostile process: %v", err)
		}
		return made
	}
}

// TestHostile is the hostile process of TestHostilePod.
func TestHostile(t *testing.T) {
	vip, err := netip.ParseAddr(os.Getenv(hostileEnv))
	if err != nil {
		return // no process of TestHostilePod
	}
	if err := errors.Join(syscall.Setgid(65534), syscall.Setuid(65534)); err != nil {
		t.Fatal(err)
	}
	h := &hostile{vip: vip}
	kinds := map[string]func() error{"MPTCP": h.mptcp, "TCP": h.tcp, "fast open": h.fastOpen, "UDP": h.udp, "unconnected UDP": h.loose, "SMC": h.smc}
	counts := map[string]*atomic.Int64{}
	var g sync.WaitGroup
	for name, open := range kinds {
		n := &atomic.Int64{}
		counts[name] = n
		g.Go(func() {
			for !h.stop.Load() {
				switch err := open(); {
				case errors.Is(err, unix.EPROTONOSUPPORT) || errors.Is(err, unix.EAFNOSUPPORT) || errors.Is(err, unix.ENOPROTOOPT):
					return // the kernel has no such sockets
				case err != nil:
					t.Errorf("%s: %v", name, err)
					return
				}
				n.Add(1)
			}
		})
	}
	fmt.Println("begins")
	_, _ = os.Stdin.Read(make([]byte, 1)) // until the test closes it
	h.stop.Store(true)
	g.Wait()
	var made []string
	for name, n := range counts {
		made = append(made, fmt.Sprint(n.Load(), " ", name))
	}
	fmt.Println(strings.Join(made, ", "))
}

// hostile opens sockets. What it dials need not answer: the hooks run before.
type hostile struct {
	vip  netip.Addr
	stop atomic.Bool
	open []int // sockets that stay open for a while
}

func (h *hostile) at(port uint16) unix.Sockaddr {
	return &unix.SockaddrInet4{Addr: h.vip.As4(), Port: int(port)}
}

// dial opens a socket, calls connect() without waiting, and closes it.
func (h *hostile) dial(domain, kind, proto int) error {
	fd, err := unix.Socket(domain, kind|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, proto)
	if err != nil {
		return err
	}
	_ = unix.Connect(fd, h.at(1000))
	return unix.Close(fd)
}

func (h *hostile) mptcp() error { return h.dial(unix.AF_INET, unix.SOCK_STREAM, mptcp) }
func (h *hostile) tcp() error   { return h.dial(unix.AF_INET, unix.SOCK_STREAM, 0) }
func (h *hostile) udp() error   { return h.dial(unix.AF_INET, unix.SOCK_DGRAM, 0) }
func (h *hostile) smc() error   { return h.dial(unix.AF_SMC, unix.SOCK_STREAM, 0) }

func (h *hostile) fastOpen() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	_ = unix.Sendto(fd, []byte("?"), unix.MSG_FASTOPEN|unix.MSG_NOSIGNAL, h.at(1000))
	return unix.Close(fd)
}

// loose sends to more frontends than a socket can remember, and keeps some hundred such sockets.
func (h *hostile) loose() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	for port := range uint16(hostilePorts) {
		_ = unix.Sendto(fd, []byte("?"), 0, h.at(1000+port))
	}
	h.open = append(h.open, fd)
	if len(h.open) > 300 {
		err = unix.Close(h.open[0])
		h.open = h.open[1:]
	}
	return err
}
