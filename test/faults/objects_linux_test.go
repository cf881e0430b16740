package faults

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"strait.io/strait/internal/testutil"
)

// far is where the only pod of the Service is, behind the tunnel of the second machine.
const far = "10.9.2.10:8080"

// tunneled is a machine whose Service leads through its tunnel to a pod of another machine.
type tunneled struct {
	*machine
	life *process
	// other is the straitd of the other machine.
	other *process
	// wanted is what the kernel held once calls worked.
	wanted string
}

// newTunneled starts two machines, and waits until a call gets through from the first to the second.
func newTunneled(t *testing.T) *tunneled {
	t.Helper()
	if _, err := exec.LookPath("nft"); err != nil {
		testutil.Missing(t, "needs nft: install the package nftables")
	}
	machines := bridged(t, 2)
	first, second := machines[0], machines[1]
	var l net.Listener
	must(t, second.routedPod(t).Do(func() (err error) {
		l, err = net.Listen("tcp", far)
		return err
	}))
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = io.Copy(c, c) // the client's error shows the same
			}()
		}
	}()
	w := &tunneled{machine: first, life: first.start(t)}
	w.other = second.start(t)
	w.other.isReady(t)
	w.life.isReady(t)
	testutil.Eventually(t, patience, w.call)
	w.wanted = w.holdings()
	return w
}

// call connects through the tunnel, and gets back what it sends.
func (w *tunneled) call() error {
	c, err := w.dial()
	if err != nil {
		return err
	}
	defer c.Close()
	return echo(c)
}

func (w *tunneled) dial() (net.Conn, error) { return w.dialTo(far) }

func (w *tunneled) dialTo(address string) (c net.Conn, err error) {
	err = w.ns.Do(func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		c, err = new(net.Dialer).DialContext(ctx, "tcp", address)
		return err
	})
	return c, err
}

func echo(c net.Conn) error {
	b := []byte("?")
	return errors.Join(c.SetDeadline(time.Now().Add(patience)), second(c.Write(b)), second(io.ReadFull(c, b)))
}

func second(_ int, err error) error { return err }

// run runs a command in the machine's namespace.
func (w *tunneled) run(words string) (string, error) {
	var out []byte
	args := strings.Fields(strings.ReplaceAll(words, "DEV", w.device()))
	err := w.ns.Do(func() (err error) {
		out, err = exec.Command(args[0], args[1:]...).CombinedOutput()
		return err
	})
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", words, err, out)
	}
	return string(out), nil
}

// holdings is what the kernel holds for strait below the load balancer, without counters and indexes.
func (w *tunneled) holdings() string {
	var text strings.Builder
	for _, words := range []string{
		"nft -s list table inet strait", "ip rule show table 5354", "ip -6 rule show table 5354",
		"ip route show table 5354", "ip -6 route show table 5354",
	} {
		out, err := w.run(words)
		fmt.Fprintf(&text, "# %s %v\n%s", words, err, out)
	}
	_ = w.ns.Do(func() error {
		l, err := netlink.LinkByName(w.device())
		if err != nil {
			fmt.Fprintf(&text, "# link: %v\n", err)
			return nil
		}
		addrs, err := netlink.AddrList(l, netlink.FAMILY_V4)
		fmt.Fprintf(&text, "# link %s mtu %d up %v %v\n", l.Type(), l.Attrs().MTU, l.Attrs().RawFlags&(unix.IFF_UP|unix.IFF_LOWER_UP), err)
		for _, a := range addrs {
			fmt.Fprintln(&text, a.IPNet)
		}
		return nil
	})
	return text.String()
}

// asWanted is nil if the kernel holds what it held, and a call gets through.
func (w *tunneled) asWanted() error {
	if now := w.holdings(); now != w.wanted {
		return fmt.Errorf("the kernel holds\n%s\nwant\n%s", now, w.wanted)
	}
	return w.call()
}

// healing is how long a fault may last: until the next regular check, and a while on a busy machine.
const healing = 45 * time.Second

// Another program deletes or changes what the daemon put into the kernel, one object after the other, and
// then all at once. Each is soon as it was, and a connection that was open goes on.
func TestObjects(t *testing.T) {
	t.Parallel()
	w := newTunneled(t)
	kept, err := w.dial()
	must(t, err)
	defer kept.Close()
	faults := []string{ // commands of one fault are separated by semicolons
		"ip link delete DEV",
		"ip link set DEV down",
		"ip link set DEV down; ip link set DEV name other0",
		"ip link set DEV mtu 1300",
		"ip address flush dev DEV",
		"ip address add 10.9.7.7/32 dev DEV",
		"ip route delete 10.9.2.0/24 table 5354",
		"ip route replace 10.9.2.0/24 dev lo table 5354 metric 154",
		"ip route flush table 5354",
		"ip rule delete table 5354",
		"ip rule add not fwmark 0x1000/0x1000 lookup 5354 priority 400 protocol 154",
		"ip rule add not fwmark 0x1000/0x1000 from 10.77.0.0/16 lookup 5354 priority 500 protocol 154; ip rule delete not fwmark 0x1000/0x1000 from all lookup 5354 priority 500",
		"nft delete table inet strait",
		"nft flush table inet strait",
		"nft flush chain inet strait filterinput",
		"nft insert rule inet strait forward drop",
		"nft insert rule inet strait filterinput accept",
		"nft add rule inet strait postrouting drop",
		"nft flush set inet strait pods4",
		"nft add table inet strait { flags dormant;}",
		"nft chain inet strait filterinput { policy drop;}",
		"nft add chain inet strait other { type filter hook forward priority 0 ;policy drop;}",
		"nft delete table inet strait; nft add table inet strait",
	}
	for _, fault := range faults {
		t.Run(fault, func(t *testing.T) { w.heals(t, kept, fault) })
	}
	t.Run("all at once", func(t *testing.T) {
		w.heals(t, kept, "ip rule delete table 5354; nft delete table inet strait; ip route flush table 5354; ip link delete DEV")
	})
	t.Run("deleted while it is made again", func(t *testing.T) {
		for range 5 {
			_, _ = w.run("ip link delete DEV") // there may be none at the moment
			time.Sleep(20 * time.Millisecond)
		}
		w.heals(t, kept, "ip link show lo")
	})
	t.Run("killed while it is made again", func(t *testing.T) {
		must(t, second(0, func() error { _, err := w.run("ip link delete DEV"); return err }()))
		time.Sleep(10 * time.Millisecond)
		w.life.kill(t)
		w.life = w.start(t)
		w.heals(t, kept, "ip link show lo")
	})
}

func (w *tunneled) heals(t *testing.T, kept net.Conn, fault string) {
	t.Helper()
	for _, words := range strings.Split(fault, "; ") {
		if _, err := w.run(words); err != nil {
			t.Fatal(err)
		}
	}
	begin := time.Now()
	testutil.Eventually(t, healing, w.asWanted)
	t.Logf("as wanted after %v", time.Since(begin).Round(time.Millisecond))
	if err := echo(kept); err != nil {
		t.Errorf("the connection that was open: %v", err)
	}
}

// A device that is not strait's has the name: the daemon says so and leaves it alone, and all comes back when
// it is gone.
func TestForeignDevice(t *testing.T) {
	t.Parallel()
	w := newTunneled(t)
	testutil.Eventually(t, patience, func() error { // the daemon may be faster with its own
		_, _ = w.run("ip link delete DEV")
		_, err := w.run("ip link add DEV type bridge")
		return err
	})
	w.life.says(t, "device "+w.device()+` is of kind "bridge"`, "ip link delete")
	if out, err := w.run("ip -d link show DEV"); err != nil || !strings.Contains(out, "bridge") || strings.Contains(out, ",UP") {
		t.Errorf("the device is not as it was: %v\n%s", err, out)
	}
	_, err := w.run("ip link delete DEV")
	must(t, err)
	testutil.Eventually(t, healing, w.asWanted)
}
