package faults

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"strait.io/strait/datapath"
	"strait.io/strait/internal/problem"
	"strait.io/strait/internal/testutil"
)

// Firewalls that drop what comes to WireGuard's port, in both directions or in one.
const (
	closedIn = `table inet closed {
		chain in { type filter hook input priority -300; udp dport 51820 drop; }
	}`
	closed = closedIn + `
	table inet closed {
		chain out { type filter hook output priority -300; udp sport 51820 drop; }
	}`
)

// failing are machines whose tunnels fail, each in its own way.
type failing struct {
	t *testing.T
	// near looks at the tunnels to all others, and whole has none that fails.
	near, whole *machine
	// To narrow, large packets are lost, and mute answers no echo requests. WireGuard's port is
	// closed from the start at closed, in one direction at half, and later at late. Rekeyed gets
	// another key, and mixed has one on near. Killed has its daemon killed, and the NAT of nat
	// forgets.
	narrow, mute, closed, half, late, rekeyed, mixed, killed, nat, behind *machine
	// While the gateway is dead, gone is unreachable for all, and only its tunnel with near is for
	// behind.
	gone               *machine
	gateway, natRouter *testutil.Namespace
	byNear, byWhole    *alarms
	lives              map[*machine]*process
}

// The tunnels of one machine fail in all ways at once while others are well. Each fault is reported
// with its code and solved after its end, and no other machine is accused. It runs alone: it has thirteen
// daemons, and measures their probes.
func TestTunnelFaults(t *testing.T) {
	f := newFailing(t)
	f.start()
	began := time.Now()
	f.byNear.reports(t, f.closed, problem.TunnelNever, "closed from the start", began)
	f.byNear.reports(t, f.half, problem.TunnelNever, "closed from the start, one way", began)
	f.carry(f.whole, f.narrow, f.late, f.rekeyed, f.mixed, f.killed, f.nat, f.behind, f.gone)
	began = time.Now()
	f.open(f.closed, f.half)

	faults := time.Now()
	f.nft(f.narrow.ns, `table inet narrow {
		chain in { type filter hook input priority -300; meta l4proto udp meta length > 1300 drop; }
	}`)
	f.nft(f.late.ns, closedIn)
	f.forward(f.gateway, "0")
	f.changeKey(f.rekeyed)
	f.mixUp(f.mixed)
	f.forget()
	for range 4 {
		f.lives[f.killed].kill(t)
		f.lives[f.killed] = f.killed.start(t)
		f.lives[f.killed].isReady(t)
	}
	t.Logf("killed four times in %s", time.Since(faults).Round(time.Second/10))
	f.byNear.ends(t, f.closed, "closed from the start", began, "carrying")
	f.byNear.ends(t, f.half, "closed from the start, one way", began, "carrying")
	f.byNear.reports(t, f.late, problem.TunnelOneWay, "a firewall appears, one way", faults)
	f.byNear.reports(t, f.behind, problem.TunnelSilent, "a dead gateway", faults)
	f.byNear.reports(t, f.narrow, problem.TunnelNarrow, "narrow without ICMP", faults)
	f.byNear.ends(t, f.gone, "a dead gateway for all, while it lasts", faults, "silent") // the machine is to blame
	f.byNear.ends(t, f.rekeyed, "another key, once", faults, "returning", "carrying")
	f.byNear.ends(t, f.mixed, "the peer has another key here, once", faults, "returning", "carrying")

	ended := time.Now()
	f.unfirewall(f.narrow.ns, "narrow")
	f.open(f.late)
	f.forward(f.gateway, "1")
	f.keepChangingKey()
	f.byNear.ends(t, f.late, "a firewall appears, one way", ended, "returning", "carrying")
	f.byNear.ends(t, f.behind, "a dead gateway", ended, "returning", "carrying")
	f.byNear.ends(t, f.gone, "a dead gateway for all", ended, "returning", "carrying")
	f.byNear.ends(t, f.narrow, "narrow without ICMP", ended, "carrying")

	f.accusesNoOther()
	f.cutMute()
}

// accusesNoOther demands that no tunnel was reported that did not fail, and none for what another
// fault does.
func (f *failing) accusesNoOther() {
	for m, who := range map[*machine]string{
		f.whole: "a machine that is well", f.killed: "a machine whose daemon was killed", f.mute: "a machine that answers no echo",
	} {
		f.byNear.neverAccused(f.t, m, who)
	}
	for _, m := range []*machine{f.late, f.behind, f.rekeyed, f.nat} {
		if i := slices.IndexFunc(f.byNear.of(m), func(x alarm) bool { return x.Code == problem.TunnelLossy }); i >= 0 {
			f.t.Errorf("what was lost during a fault counts after it: %s", f.byNear.of(m)[i])
		}
	}
	f.byWhole.neverAccused(f.t, f.killed, "a machine whose daemon was killed")
	f.byWhole.neverAccused(f.t, f.near, "a machine that is well")
}

// cutMute closes the tunnel to the machine that answers no echo, which WireGuard's counters show.
func (f *failing) cutMute() {
	must(f.t, f.byNear.is(f.mute, "unknown"))
	began := time.Now()
	f.nft(f.mute.ns, closed)
	f.byNear.reports(f.t, f.mute, problem.TunnelSilent, "closed, and answered no echo before", began)
	began = time.Now()
	f.open(f.mute)
	f.byNear.ends(f.t, f.mute, "closed, and answered no echo before", began, "unknown")
}

func newFailing(t *testing.T) *failing {
	t.Helper()
	for tool, pkg := range map[string]string{"nft": "nftables", "wg": "wireguard-tools"} {
		if _, err := exec.LookPath(tool); err != nil {
			testutil.Missing(t, "needs "+tool+": install the package "+pkg)
		}
	}
	all := bridged(t, 13)
	f := &failing{t: t, near: all[0], whole: all[1], narrow: all[2], mute: all[3], closed: all[4], half: all[5], late: all[6],
		rekeyed: all[7], mixed: all[8], killed: all[9], nat: all[10], behind: all[11], gone: all[12], lives: map[*machine]*process{}}
	f.gateway, f.natRouter = f.router(250), f.router(251)
	for _, m := range all {
		if m != f.gone {
			f.via(m, f.gone, 250)
		}
		if m != f.nat && m != f.gone {
			f.via(m, f.nat, 251)
		}
	}
	for _, way := range [][2]*machine{{f.near, f.behind}, {f.behind, f.near}} {
		mark := fmt.Sprintf("%#x", datapath.TunnelMark)
		f.run(way[0], "", "ip", "rule", "add", "fwmark", mark, "to", way[1].addr(), "lookup", "99", "priority", "90")
		f.run(way[0], "", "ip", "route", "add", way[1].addr(), "via", "172.31.9.250", "table", "99")
	}
	f.nft(f.natRouter, fmt.Sprintf(`table ip nat {
		chain forward { type filter hook forward priority 0; ip daddr %[1]s udp dport 51820 ct state new drop; }
		chain post { type nat hook postrouting priority 100; ip saddr %[1]s udp sport 51820 masquerade to :20000-20999 random; }
	}`, f.nat.addr()))
	must(t, f.mute.ns.Do(func() error { return os.WriteFile("/proc/sys/net/ipv4/icmp_echo_ignore_all", []byte("1"), 0) }))
	f.nft(f.closed.ns, closed)
	f.nft(f.half.ns, closedIn)
	return f
}

// router makes a machine that forwards, on the bridge.
func (f *failing) router(number int) *testutil.Namespace {
	f.t.Helper()
	bridge, err := netlink.LinkByName("br0")
	must(f.t, err)
	ns := plugged(f.t, number, bridge.Attrs().Index)
	f.forward(ns, "1")
	must(f.t, ns.Do(func() error {
		var errs []error
		for _, l := range []string{"all", "eth0"} { // it must not tell machines the direct way
			errs = append(errs, os.WriteFile("/proc/sys/net/ipv4/conf/"+l+"/send_redirects", []byte("0"), 0))
		}
		return errors.Join(errs...)
	}))
	return ns
}

func (f *failing) forward(ns *testutil.Namespace, on string) {
	f.t.Helper()
	must(f.t, ns.Do(func() error { return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte(on), 0) }))
}

// via routes what two machines send to each other through a router.
func (f *failing) via(a, b *machine, router int) {
	f.t.Helper()
	for _, way := range [][2]*machine{{a, b}, {b, a}} {
		f.run(way[0], "", "ip", "route", "add", way[1].addr(), "via", fmt.Sprintf("172.31.9.%d", router))
	}
}

// start starts the machines, and waits until two of them are ready.
func (f *failing) start() {
	f.t.Helper()
	for _, m := range []*machine{f.near, f.whole, f.narrow, f.mute, f.closed, f.half, f.late, f.rekeyed, f.mixed, f.killed, f.nat, f.behind, f.gone} {
		f.lives[m] = m.start(f.t)
	}
	f.byNear, f.byWhole = listen(f.t, f.lives[f.near]), listen(f.t, f.lives[f.whole])
	f.lives[f.near].isReady(f.t)
	f.lives[f.whole].isReady(f.t)
}

func (f *failing) carry(machines ...*machine) {
	f.t.Helper()
	for _, m := range machines {
		testutil.Eventually(f.t, detection, func() error { return f.byNear.is(m, "carrying") })
	}
}

// nft loads rules into a namespace.
func (f *failing) nft(ns *testutil.Namespace, rules string) {
	f.t.Helper()
	_, err := command(ns, rules, "nft", "-f", "-")
	must(f.t, err)
}

func (f *failing) unfirewall(ns *testutil.Namespace, table string) {
	f.t.Helper()
	_, err := command(ns, "", "nft", "delete", "table", "inet", table)
	must(f.t, err)
}

func (f *failing) open(machines ...*machine) {
	f.t.Helper()
	for _, m := range machines {
		f.unfirewall(m.ns, "closed")
	}
}

// run runs a command on a machine, and returns what it prints.
func (f *failing) run(m *machine, stdin string, argv ...string) string {
	f.t.Helper()
	out, err := command(m.ns, stdin, argv...)
	must(f.t, err)
	return strings.TrimSpace(out)
}

// command runs a command in a namespace.
func command(ns *testutil.Namespace, stdin string, argv ...string) (text string, err error) {
	err = ns.Do(func() error {
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Stdin = strings.NewReader(stdin)
		out, err := cmd.CombinedOutput()
		if text = string(out); err != nil {
			return fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), err, out)
		}
		return nil
	})
	return text, err
}

// changeKey gives the device of a machine another key, as another program would.
func (f *failing) changeKey(m *machine) {
	f.t.Helper()
	f.run(m, f.run(m, "", "wg", "genkey"), "wg", "set", m.device(), "private-key", "/dev/stdin")
}

// mixUp replaces the key of a machine on the device of near.
func (f *failing) mixUp(m *machine) {
	f.t.Helper()
	right := f.run(m, "", "wg", "show", m.device(), "public-key")
	wrong := f.run(m, f.run(m, "", "wg", "genkey"), "wg", "pubkey")
	for line := range strings.Lines(f.run(f.near, "", "wg", "show", f.near.device(), "dump")) {
		if peer := strings.Fields(line); peer[0] == right {
			f.run(f.near, "", "wg", "set", f.near.device(), "peer", right, "remove",
				"peer", wrong, "endpoint", peer[2], "allowed-ips", peer[3])
			return
		}
	}
	f.t.Fatalf("no peer has the key of c%d", m.number)
}

func (m *machine) device() string { return m.config["mesh"].(tree)["device"].(string) }

// keepChangingKey has another program change a device's key as often as the daemon puts it back,
// until that is reported.
func (f *failing) keepChangingKey() {
	f.t.Helper()
	began := time.Now()
	reported := func() bool {
		of := f.byNear.of(f.rekeyed)
		return len(of) > 0 && of[len(of)-1].to.IsZero()
	}
	for !reported() {
		if time.Since(began) > detection {
			f.t.Fatalf("not reported: %v", f.byNear.of(f.rekeyed))
		}
		f.changeKey(f.rekeyed)
		time.Sleep(300 * time.Millisecond)
	}
	of := f.byNear.of(f.rekeyed)
	f.t.Logf("another key, again and again: %s after %s", of[len(of)-1].Code, time.Since(began).Round(time.Second/10))
	began = time.Now()
	f.byNear.ends(f.t, f.rekeyed, "another key, again and again", began, "returning", "carrying")
}

// forget has the NAT forget its connections, and use other ports for new ones.
func (f *failing) forget() {
	f.t.Helper()
	before, err := f.byNear.state(f.nat)
	must(f.t, err)
	if p := before.Underlay.Port(); p < 20000 || p > 20999 {
		f.t.Errorf("the machine behind the NAT is at %s", before.Underlay)
	}
	f.nft(f.natRouter, fmt.Sprintf(`flush chain ip nat post
		add rule ip nat post ip saddr %s udp sport 51820 masquerade to :21000-21999 random`, f.nat.addr()))
	must(f.t, f.natRouter.Do(func() error { return netlink.ConntrackTableFlush(netlink.ConntrackTable) }))
	began := time.Now()
	testutil.Eventually(f.t, detection, func() error {
		now, err := f.byNear.state(f.nat)
		if err == nil && (now.Underlay.Port() < 21000 || now.State != "carrying" || now.Received <= before.Received) {
			err = fmt.Errorf("a NAT forgets: the tunnel is %s to %s", now.State, now.Underlay)
		}
		return err
	})
	f.t.Logf("a NAT forgets: it carries from another port after %s: %v", time.Since(began).Round(time.Second/10), f.byNear.of(f.nat))
}
