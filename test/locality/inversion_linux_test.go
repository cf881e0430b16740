package locality

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"strait.io/strait/internal/fabric"
	"strait.io/strait/internal/testutil"
)

// TestInversion: of two clusters that labels call equal, the one that answers faster gets the connections.
// When the network changes so that it is the slower one, they move to the other: once, not at once, and
// without a call that fails.
func TestInversion(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4)
	west, central := w.west.delayed(), w.central.delayed()
	w.near.ready(0)
	both := shares{"us-west": 0.5, "eu-central": 0.5}
	w.settles(both)
	w.looksNear()

	since := time.Now()
	west.Store(int64(80 * time.Millisecond))
	l := w.call(20 * time.Millisecond)
	moves := w.watchPlan(both)
	w.settlesWithin(shares{"eu-central": 1}, measured)
	if took := time.Since(since); took < damped {
		t.Errorf("the ranking followed after %s, which is not damped", took)
	}
	if r := w.reason("us-west"); r != "standby: a cluster that answers faster carries everything" {
		t.Errorf("us-west stands by because %q", r)
	}
	w.counted(100, shares{"eu-central": 1})

	west.Store(0)
	central.Store(int64(80 * time.Millisecond))
	w.settlesWithin(shares{"us-west": 1}, 2*measured)
	w.counted(100, shares{"us-west": 1})
	if out := w.near.strait("members"); !strings.Contains(out, "eu-central") {
		t.Errorf("strait members says:\n%s", out)
	}
	// The near cluster's step and the far one's can change a moment apart.
	if got := moves(); len(got) > 3 || got[len(got)-1] != (shares{"us-west": 1}).String() {
		t.Errorf("the plan moved to %q, want to eu-central, perhaps to both, and to us-west", got)
	} else {
		t.Logf("the plan moved to %q", got)
	}
	l.mustBeWhole(since)
}

const (
	// damped is how long a distance must be another one at least.
	damped = time.Minute
	// measured is how long it takes until one is: a node is pinged every few seconds, and the shortest of
	// its last eight times counts.
	measured = damped + 3*patience
	// nearest is the round-trip time, in milliseconds, below which all clusters are equally far.
	nearest = 5
)

// looksNear waits until a short round-trip time was measured to each endpoint's node. Before that, a
// busy machine alone can make a cluster look far, and the minute begins before the network changes.
func (w *world) looksNear() {
	w.Helper()
	testutil.Eventually(w, measured, func() error {
		f, err := w.explained()
		if err != nil {
			return err
		}
		for _, e := range f.Endpoints {
			if e.Cluster != w.near.name && (e.RTT == 0 || e.RTT >= nearest) {
				return fmt.Errorf("the round-trip time to %s is %.1f ms, want less than %d; 0 is unknown", e.Cluster, e.RTT, nearest)
			}
		}
		return nil
	})
}

// watchPlan looks at what is explained all the time, and returns a function that ends it and says to what
// it moved.
func (w *world) watchPlan(last shares) (ended func() []string) {
	stop, done := make(chan struct{}), make(chan struct{})
	moves := []string{last.String()}
	go func() {
		defer close(done)
		for {
			// An error means that the kernel is about to hold the plan, or that the daemon is busy.
			if now, err := w.plan(); err == nil && now.String() != moves[len(moves)-1] {
				moves = append(moves, now.String())
			}
			select {
			case <-stop:
				return
			case <-time.After(200 * time.Millisecond):
			}
		}
	}()
	return func() []string {
		close(stop)
		<-done
		return slices.Clone(moves[1:])
	}
}

// delayed makes the router hand all packets for the cluster's node to a TUN device, from which the test
// gives them back later: by as much as the number says, in nanoseconds.
func (c *cluster) delayed() *atomic.Int64 {
	c.w.Helper()
	name, table := fmt.Sprintf("delay%d", c.number), fmt.Sprint(100+int(c.number))
	tun, err := openTun(c.w.core, name)
	c.w.must(err)
	c.w.in(c.w.core, "ip", "link", "set", name, "up")
	// What comes back from the device has addresses of other devices.
	c.w.must(fabric.InsideNamed(c.w.core, func() error {
		return errors.Join(os.WriteFile("/proc/sys/net/ipv4/conf/all/rp_filter", []byte("0"), 0), os.WriteFile("/proc/sys/net/ipv4/conf/"+name+"/rp_filter", []byte("0"), 0))
	}))
	c.w.in(c.w.core, "ip", "rule", "add", "pref", "100", "iif", name, "lookup", "main")
	c.w.in(c.w.core, "ip", "rule", "add", "pref", "200", "to", c.underlay(0).String()+"/24", "lookup", table)
	c.w.in(c.w.core, "ip", "route", "add", "default", "dev", name, "table", table)
	delay := &atomic.Int64{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		relay(tun, delay)
	}()
	c.w.Cleanup(func() {
		tun.Close()
		<-done
	})
	return delay
}

// packet is one that waits.
type packet struct {
	bytes []byte
	due   time.Time
}

// relay gives back packets in order, until the device is closed.
func relay(tun *os.File, delay *atomic.Int64) {
	waiting, done := make(chan packet, 4096), make(chan struct{})
	go func() {
		defer close(done)
		for p := range waiting {
			time.Sleep(time.Until(p.due))
			_, _ = tun.Write(p.bytes) // a packet that is lost is no news for those that sent it
		}
	}()
	buf := make([]byte, 1<<16)
	for {
		n, err := tun.Read(buf)
		if err != nil {
			close(waiting)
			<-done
			return
		}
		waiting <- packet{slices.Clone(buf[:n]), time.Now().Add(time.Duration(delay.Load()))}
	}
}

// openTun makes a TUN device in a namespace; it goes when the file is closed.
func openTun(ns, name string) (*os.File, error) {
	var fd int
	err := fabric.InsideNamed(ns, func() (err error) {
		if fd, err = unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0); err != nil {
			return err
		}
		request, err := unix.NewIfreq(name)
		if err != nil {
			return err
		}
		request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		return unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
	})
	if err != nil {
		return nil, fmt.Errorf("make TUN device %s: %w", name, err)
	}
	return os.NewFile(uintptr(fd), name), nil
}
