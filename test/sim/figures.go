package sim

import (
	"fmt"
	"slices"
	"time"
)

// Figures are what a clusterset of a size costs, for each node. The network's are in virtual time
// and follow from the seed; CPU and memory are this machine's, and are printed only.
type Figures struct {
	Clusters, Nodes int // of each cluster
	// At rest, for each second: messages and their bytes, and the kB of heartbeats.
	RestMessages, RestBytes, HeartbeatKB float64
	// For each change.
	ChangeMessages, ChangeBytes float64
	// Half, Most: how long a change takes to reach nodes, the median and the 99th percentile;
	// Lossy: the latter with 1 % loss.
	Half, Most, Lossy time.Duration
	// At 500 changes a second: bytes for each, the 99th percentile, and the kB that the node sends in a
	// second that sends most.
	BusyBytes float64
	Busy      time.Duration
	BusiestKB float64
	// What a newcomer receives until it has all records, how long that takes, and how long until it
	// is alive for all others and they are for it.
	NewcomerBytes   float64
	Newcomer, Alive time.Duration

	CPUAtRest, CPUOfChange time.Duration
	Memory                 float64
}

// measured is a clusterset whose costs are measured.
type measured struct {
	*Network
	nodes float64
	// cpu is what nodes used, and cpuOfNews what they used for messages and publications.
	cpu, cpuOfNews time.Duration
}

// Meter measures what a simulation takes of the machine on which it runs: the time, and the bytes of
// memory that are in use.
type Meter struct {
	Now    func() time.Time
	Memory func() float64
}

// Measure runs a clusterset of so many clusters and nodes of each, and returns what it costs. Busy has
// it run at 500 changes a second, too.
func Measure(seed uint64, clusters, nodes int, busy bool, meter Meter) (f Figures, err error) {
	w := &measured{nodes: float64(clusters * nodes)}
	w.Network = New(Config{
		Seed: seed, Clusters: clusters, Nodes: nodes, Rooted: nodes, Endpoints: 10, Pinned: true, Diskless: true,
		Measure: func(news bool, work func()) {
			began := meter.Now()
			work()
			took := meter.Now().Sub(began)
			if news {
				w.cpuOfNews += took
			} else {
				w.cpu += took
			}
		},
	})
	last := len(w.Machines) - 1
	w.Resume(w.Machines[:last])
	w.Run(time.Second)
	if err := w.newcomer(w.Machines[last], &f); err != nil {
		return f, err
	}
	w.Until(func() bool { return w.Agrees() == nil }, time.Second, 10*time.Second)
	if err := w.Agrees(); err != nil {
		return f, err
	}
	w.rest(&f)
	w.changes(&f)
	if busy {
		w.busy(&f)
	}
	inUse := meter.Memory()
	f.Memory = inUse / float64(len(w.Machines)) // which keeps them in memory until then
	return f, nil
}

// newcomer starts a machine that knows nothing.
func (w *measured) newcomer(m *Machine, f *Figures) error {
	began, all := w.now, len(w.Machines)+w.cfg.Clusters
	m.Start(w.Machines[0])
	has := func() bool { return m.node.State().Records.Len() == all }
	if !w.Until(has, 10*time.Millisecond, time.Minute) {
		return fmt.Errorf("the newcomer has %d records of %d after a minute", m.node.State().Records.Len(), all)
	}
	f.Newcomer, f.NewcomerBytes = w.now-began, float64(m.Received)
	others := w.Machines[:len(w.Machines)-1]
	alive := func() bool {
		others = slices.DeleteFunc(slices.Clone(others), func(p *Machine) bool {
			return p.hears(m.Self) && m.hears(p.Self)
		})
		return len(others) == 0
	}
	if !w.Until(alive, 5*time.Millisecond, time.Minute) {
		return fmt.Errorf("the newcomer is not alive for %s, or that for it, after a minute", others[0].Self)
	}
	f.Alive = w.now - began
	return nil
}

// many is how many nodes make each virtual second expensive, because there are two heartbeats a
// second from each to each other one: less time passes then, and fewer changes are followed.
const many = 200

// rest measures what is sent while nothing changes.
func (w *measured) rest(f *Figures) {
	d := 2 * time.Second
	if w.nodes > many {
		d = time.Second
	}
	w.Run(yield) // until all streams stand
	before, cpu := w.Sent, w.cpu
	w.Run(d)
	sent := w.Sent.Since(before)
	per := w.nodes * d.Seconds()
	f.RestMessages, f.RestBytes = float64(sent.Messages)/per, float64(sent.Bytes)/per
	f.HeartbeatKB = float64(sent.HeartbeatBytes) / per / 1e3
	f.CPUAtRest = time.Duration(float64(w.cpu-cpu) / per).Round(time.Microsecond)
}

// changes measures single changes, without loss and with it.
func (w *measured) changes(f *Figures) {
	const gap = 300 * time.Millisecond
	n := 6
	if w.nodes > many {
		n = 3
	}
	follow := func() Times {
		var all []*Track
		for range n {
			all = append(all, w.Change(w.any()))
			w.Run(gap)
		}
		w.Until(func() bool { return w.TimesOf(all).Missing == 0 }, gap, 10*time.Second)
		w.Untrack()
		return w.TimesOf(all)
	}
	before, cpu := w.Sent, w.cpuOfNews
	began := w.now
	times := follow()
	took := (w.now - began).Seconds()
	sent, per := w.Sent.Since(before), float64(n)*w.nodes
	f.Half, f.Most = times.Half, times.Most
	f.ChangeMessages = float64(sent.Messages)/per - f.RestMessages*took/float64(n)
	f.ChangeBytes = float64(sent.Bytes)/per - f.RestBytes*took/float64(n)
	f.CPUOfChange = time.Duration(float64(w.cpuOfNews-cpu) / per).Round(time.Microsecond)
	w.Loss = 0.01
	f.Lossy = follow().Most
}

// busy measures 500 changes a second.
func (w *measured) busy(f *Figures) {
	const n, gap = 500, 2 * time.Millisecond
	w.Loss = 0
	before, sent := w.Sent, map[*Machine]int{}
	for _, m := range w.Machines {
		sent[m] = m.Sent
	}
	began := w.now
	var all []*Track
	for range n {
		all = append(all, w.Change(w.any()))
		w.Run(gap)
	}
	w.Until(func() bool { return w.TimesOf(all).Missing == 0 }, gap, 10*time.Second)
	f.Busy = w.TimesOf(all).Most
	w.Untrack()
	took := (w.now - began).Seconds()
	for _, m := range w.Machines {
		f.BusiestKB = max(f.BusiestKB, float64(m.Sent-sent[m])/took/1e3)
	}
	f.BusyBytes = float64(w.Sent.Since(before).Bytes) / n / w.nodes
}
