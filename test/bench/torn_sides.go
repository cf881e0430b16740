package main

import (
	"errors"
	"fmt"

	"strait.io/strait/datapath"
	"strait.io/strait/datapath/socklb"
	"strait.io/strait/internal/problem"
	"strait.io/strait/test/bench/cilium"
	"strait.io/strait/test/bench/stats"
)

// tornSide is a balancer that is tested for torn reads.
type tornSide struct {
	name string
	// refuses says that a connect() in the middle of a change may be refused.
	refuses bool
	// open opens the balancer on a cgroup with empty maps. If tight, the maps are so small that
	// what a change retires is reused as soon as that is allowed.
	open   func(b *bench, cgroup string, tight bool) (update func([]datapath.Frontend) error, done func() error, err error)
	report func(b *bench, t *torn, updatesPerSecond float64) error
}

func tornStrait(b *bench, cgroup string, tight bool) (func([]datapath.Frontend) error, func() error, error) {
	slots := uint32(socklb.DefaultMaxBackends)
	if tight {
		const used = tornFrontends * tornBackends
		slots = used + used/4
	}
	lb, done, err := b.balancer("torn", cgroup, socklb.Config{MaxFrontends: 256, MaxBackends: slots, MaxSockets: 1024})
	if err != nil {
		return nil, nil, err
	}
	return func(want []datapath.Frontend) error { return problem.Strict(lb.Reconcile(want, true)) }, done, nil
}

func reportTornStrait(b *bench, t *torn, updatesPerSecond float64) error {
	return errors.Join(
		b.set("torn_reads", stats.Exactly(float64(t.wrong+t.kept))),
		b.set("torn_reads_checked", stats.Exactly(float64(t.checked))),
		b.set("torn_updates_per_s", stats.Exactly(updatesPerSecond)),
		b.set("torn_updates_per_s_tight", stats.Exactly(float64(t.updates)/t.took.Seconds())),
	)
}

// tornCilium opens Cilium's balancer. Its maps are never tight: the kernel reuses an element as soon
// as it is free, however many there are.
func tornCilium(preallocate bool) func(*bench, string, bool) (func([]datapath.Frontend) error, func() error, error) {
	return func(b *bench, cgroup string, _ bool) (func([]datapath.Frontend) error, func() error, error) {
		lb, err := b.ciliumOn(cgroup, cilium.In(b.dir).Traced, tornWorld()[0], preallocate)
		if err != nil {
			return nil, nil, err
		}
		return lb.Update, lb.Close, nil
	}
}

// reportTornPeer reports refused connects by themselves, and those that found no service although
// each has one all the time. Only these two keep the frontend's address.
func reportTornPeer(prefix string) func(*bench, *torn, float64) error {
	return func(b *bench, t *torn, updatesPerSecond float64) error {
		refused := t.refused.Load()
		if t.kept < refused {
			return fmt.Errorf("%d connects kept the frontend's address, but %d were refused", t.kept, refused)
		}
		return errors.Join(
			b.set(prefix+"torn_reads", stats.Exactly(float64(t.wrong))),
			b.set(prefix+"torn_reads_checked", stats.Exactly(float64(t.checked))),
			b.set(prefix+"torn_refused", stats.Exactly(float64(refused))),
			b.set(prefix+"torn_missed", stats.Exactly(float64(t.kept-refused))),
			b.set(prefix+"torn_updates_per_s", stats.Exactly(updatesPerSecond)),
		)
	}
}
