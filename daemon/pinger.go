package daemon

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/server"
	"strait.io/strait/datapath/ping"
)

// Bounds of a ping. All of it must be over before a daemon that passes the query on gives up.
const (
	pingTimes    = 3
	pingEvery    = 150 * time.Millisecond
	pingPatience = time.Second
	// maxPings is how many can run at once. Each keeps its place for pingRest, also when it is over
	// sooner, so that no caller can make the daemon send more.
	maxPings = 4
	pingRest = 2 * time.Second
)

// pings has the places for those that run.
type pings chan struct{}

func newPings() pings { return make(pings, maxPings) }

// enter takes a place, which is free again after pingRest.
func (p pings) enter() bool {
	select {
	case p <- struct{}{}:
		time.AfterFunc(pingRest, func() { <-p })
		return true
	default:
		return false
	}
}

// Ping asks a node, pod or service of the clusterset for an answer, by each way there. It reaches no
// address but those that nodes and endpoints have.
func (d *Daemon) Ping(ctx context.Context, to string) (*api.Ping, error) {
	m := d.now()
	if m == nil {
		return nil, errStarting
	}
	v := d.viewer(m)
	t, err := v.pingTarget(to, v.services())
	if err != nil {
		return nil, err
	}
	if !d.pings.enter() {
		return nil, server.ErrBusy
	}
	ctx, cancel := context.WithTimeout(ctx, pingTimes*pingEvery+pingPatience+pingEvery)
	defer cancel()
	ways := t.ways
	var gossip, tunnel []api.Way
	var wg sync.WaitGroup
	if t.origin.Node != "" {
		v.heard, v.rtts = d.gossip.Heard(), d.gossip.RTTs()
		way := api.Way{Way: api.WayGossip, Heard: v.heard[t.origin], Known: milliseconds(v.rtts[t.origin])}
		wg.Go(func() { gossip = []api.Way{connects(ctx, way, t.gossip, pingTimes)} })
		wg.Go(func() { tunnel = d.pingTunnel(ctx, t) })
	}
	for i := range ways {
		wg.Go(func() { ways[i] = connects(ctx, ways[i], t.addrs[i], ways[i].Sent) })
	}
	wg.Wait()
	ways = append(append(gossip, tunnel...), ways...)
	return api.NewPing(d.viewpoint(m), t.kind, t.name, t.node(), ways, t.tunnelPort, t.gossip.Port()), nil
}

// connects opens TCP connections to an address, one each pingEvery, and closes them.
func connects(ctx context.Context, way api.Way, to netip.AddrPort, times int) api.Way {
	way.To, way.Sent = to.String(), 0
	if !to.IsValid() || to.Port() == 0 {
		way.To, way.Skipped = "", "its address is not known"
		return way
	}
	took, errs := make([]time.Duration, times), make([]error, times)
	var wg sync.WaitGroup
	for i := range times {
		wg.Go(func() {
			if !sleep(ctx, time.Duration(i)*pingEvery) {
				errs[i] = ctx.Err()
				return
			}
			began := time.Now()
			c, err := (&net.Dialer{Timeout: pingPatience}).DialContext(ctx, "tcp", to.String())
			if took[i], errs[i] = time.Since(began), err; err == nil {
				c.Close()
			}
		})
	}
	wg.Wait()
	for i := range times {
		if errs[i] != nil {
			took[i] = 0
			way.Error = plainly(errs[i])
		}
	}
	return summed(way, took)
}

// plainly is why a connection failed, without the addresses, which are shown already.
func plainly(err error) string {
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() || errors.Is(err, context.DeadlineExceeded) {
		return "no answer in time"
	}
	var call *os.SyscallError
	if errors.As(err, &call) {
		return call.Err.Error()
	}
	return err.Error()
}

// summed counts the round trips of a way; 0 is one that did not come.
func summed(way api.Way, took []time.Duration) api.Way {
	for _, d := range took {
		if way.Sent++; d == 0 {
			continue
		}
		way.Answered++
		if ms := milliseconds(d); way.RTT == 0 || ms < way.RTT {
			way.RTT = ms
		}
	}
	return way
}

func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// pingTunnel sends echo requests to a node inside the tunnel, small ones and some of the tunnel's size.
// It is empty for a node that no tunnel leads to because the cluster needs none.
func (d *Daemon) pingTunnel(ctx context.Context, t pingTarget) []api.Way {
	k, o := d.kernel, t.origin
	if k.prober == nil || o.Cluster == d.self().Cluster {
		return nil
	}
	small, large := api.Way{Way: api.WayTunnel}, api.Way{Way: api.WayLarge}
	from, to, size, is := k.prober.at(o)
	if !is {
		small.Skipped = "its tunnel is not probed"
		if t.noTunnel != "" {
			small.Skipped = t.noTunnel
		}
		return []api.Way{small}
	}
	verdicts, _ := k.prober.verdicts()
	small.State = verdicts[o].State.String()
	small.Known = milliseconds(verdicts[o].RTT)
	small.To, large.To = to.String(), to.String()
	sizes := make([]int, pingTimes, 2*pingTimes)
	if size > 0 {
		for range pingTimes {
			sizes = append(sizes, size)
		}
	}
	took, err := echoes(ctx, k.config.Mesh.Device, from, to, sizes)
	if err != nil {
		small.Skipped = err.Error()
		return []api.Way{small}
	}
	out := []api.Way{summed(small, took[:pingTimes])}
	if size > 0 {
		out = append(out, summed(large, took[pingTimes:]))
	}
	return out
}

// echoes sends echo requests of the given sizes, a small one first, and returns how long each answer
// took; 0 if none came.
func echoes(ctx context.Context, device string, from, to netip.Addr, sizes []int) ([]time.Duration, error) {
	s, err := ping.Open(ctx, device, from)
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	type sent struct {
		i  int
		at time.Time
	}
	open, took, all := map[uint64]sent{}, make([]time.Duration, len(sizes)), make(chan struct{})
	var receiver sync.WaitGroup
	receiver.Go(func() {
		for left := len(sizes); ; {
			peer, id, err := s.Receive()
			if err != nil {
				return
			}
			mu.Lock()
			if r, is := open[id]; is && peer == to {
				took[r.i] = max(time.Since(r.at), time.Microsecond)
				delete(open, id)
				left--
			}
			mu.Unlock()
			if left == 0 {
				close(all)
				return
			}
		}
	})
	for i, size := range sizes {
		id := newID()
		mu.Lock()
		open[id] = sent{i, time.Now()}
		mu.Unlock()
		_ = s.Send(to, id, size) // what the kernel does not take is not answered
		if !sleep(ctx, pingEvery/2) {
			break
		}
	}
	patience, cancel := context.WithTimeout(ctx, pingPatience)
	defer cancel()
	select {
	case <-all:
	case <-patience.Done():
	}
	s.Close()
	receiver.Wait()
	return took, nil
}
