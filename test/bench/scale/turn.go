package scale

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"strait.io/strait/datapath/socklb/inspect"
)

const (
	// pause is how long straitd waits for more changes before a turn.
	pause = 5 * time.Millisecond
	// calm is how long to wait for the further effects of a change.
	calm = 300 * time.Millisecond
	// collectEvery is after how many turns this process, which plays a thousand nodes, collects its
	// garbage. It does so between two turns, because in a turn straitd needs the processors.
	collectEvery = 10
)

// The metrics of straitd's whole turns, by its own clock. They include what it does after the map
// has flipped.
const (
	turnSum   = `strait_reconcile_duration_seconds_sum{target="plan"}`
	turnCount = `strait_reconcile_duration_seconds_count{target="plan"}`
)

// turns changes one endpoint repeatedly, through the gossip of a node that has no other endpoint.
// It measures how long straitd takes from the record to the map, without the pause, and how many
// requests to the kernel it makes.
func (m *measurement) turns(ctx context.Context, suffix string) error {
	m.probes.quiet.Lock()
	defer m.probes.quiet.Unlock()
	asked, err := countRequests(m.daemon.cmd.Process.Pid)
	if err != nil {
		return err
	}
	defer asked.Close()
	set, err := m.openSet()
	if err != nil {
		return err
	}
	defer set.Close()
	before, err := m.probes.metrics(ctx)
	if err != nil {
		return err
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	var ms, requests []float64
	for n := range m.Turns {
		if n%collectEvery == 0 {
			runtime.GC()
		}
		time.Sleep(calm)
		from, err := asked.total()
		if err != nil {
			return err
		}
		took, err := m.turn(ctx, set, n%2 == 1)
		if err != nil {
			return fmt.Errorf("turn %d: %w", n, err)
		}
		time.Sleep(calm)
		to, err := asked.total()
		if err != nil {
			return err
		}
		ms, requests = append(ms, float64((took-pause).Microseconds())/1000), append(requests, float64(to-from))
	}
	after, err := m.probes.metrics(ctx)
	if err != nil {
		return err
	}
	slices.Sort(ms)
	slices.Sort(requests)
	m.metrics["turn_ms_one_change"+suffix] = ms[len(ms)/2]
	m.metrics["turn_p99_ms_one_change"+suffix] = ms[(len(ms)-1)*99/100]
	m.metrics["turn_syscalls_one_change"+suffix] = requests[len(requests)/2]
	m.metrics["turn_whole_ms"+suffix] = (after[turnSum] - before[turnSum]) / (after[turnCount] - before[turnCount]) * 1000
	return nil
}

// turn makes the quick node's endpoint ready or not, and returns how long it took until the map had
// the change.
func (m *measurement) turn(ctx context.Context, set *countedSet, ready bool) (time.Duration, error) {
	content := m.world.content(m.world.quick())
	content.Endpoints[0].Ready, content.Endpoints[0].Serving = ready, ready
	want := m.Endpoints - 1
	if ready {
		want++
	}
	start := time.Now()
	m.quick.Publish(content)
	for {
		n, err := set.Count(set.index)
		switch {
		case err != nil || int(n) == want:
			return time.Since(start), err
		case ctx.Err() != nil:
			return 0, context.Cause(ctx)
		case time.Since(start) > 30*time.Second:
			return 0, fmt.Errorf("the map has %d backends, want %d", n, want)
		}
		time.Sleep(100 * time.Microsecond)
	}
}

// countedSet is the set of the frontend whose backends change.
type countedSet struct {
	*inspect.Reader
	index uint32
}

// openSet finds the frontend that loses a backend when the quick node's endpoint is not ready.
func (m *measurement) openSet() (*countedSet, error) {
	reader, err := inspect.OpenReader(m.daemon.pins)
	if err != nil {
		return nil, err
	}
	backends, err := reader.Backends()
	if err != nil {
		reader.Close()
		return nil, err
	}
	_, addr, _ := m.world.pod(0, 0)
	for _, b := range backends {
		if b.Backend.Addr() != addr {
			continue
		}
		services, err := reader.Services()
		for _, s := range services {
			if s.Addr == b.Frontend && err == nil {
				return &countedSet{reader, s.Index}, nil
			}
		}
	}
	reader.Close()
	return nil, errors.New("find the frontend to change: none has the quick node's endpoint")
}

// backends waits until the kernel has want backends.
func (m *measurement) backends(ctx context.Context, want int) error {
	reader, err := inspect.OpenReader(m.daemon.pins)
	if err != nil {
		return err
	}
	defer reader.Close()
	return await(ctx, 5*time.Millisecond, func() (bool, error) {
		slots, err := reader.Services()
		n := 0
		for _, s := range slots {
			if !s.Addr.IP.IsLoopback() {
				n += int(s.Count)
			}
		}
		return n == want, err
	})
}
