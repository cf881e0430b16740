package kube

import (
	"context"
	"math/rand/v2"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/gentype"
	"k8s.io/utils/ptr"

	"strait.io/strait/clustermesh"
)

// The election is that of client-go's package leaderelection, whose Leases it shares. It is not
// used because it links a client of every kind of Kubernetes, and reports that the Lease is lost
// late: it first tries to release it, which takes as long again if the API server is away.

// claim edits a Lease so that a node holds it, and reports whether the node may write it. It may if
// it holds the Lease already, if nobody does, or if the holder has not renewed it in time.
// Unchanged is how long this node has seen the Lease as it is: the clocks of other nodes do not
// count.
func claim(l *coordinationv1.Lease, self clustermesh.NodeName, unchanged time.Duration, now time.Time) bool {
	s := &l.Spec
	holder := ptr.Deref(s.HolderIdentity, "")
	if holder != string(self) {
		if holder != "" && unchanged < time.Duration(ptr.Deref(s.LeaseDurationSeconds, 0))*time.Second {
			return false
		}
		s.HolderIdentity, s.AcquireTime = new(string(self)), new(metav1.NewMicroTime(now))
		if l.ResourceVersion != "" { // it is not a new one
			s.LeaseTransitions = new(ptr.Deref(s.LeaseTransitions, 0) + 1)
		}
	}
	s.RenewTime, s.LeaseDurationSeconds = new(metav1.NewMicroTime(now)), new(int32(leaseDuration/time.Second))
	return true
}

// campaign is a candidate's part in one election.
type campaign struct {
	*Leader
	leases *gentype.Client[*coordinationv1.Lease]
	// seen is the Lease as this node saw it last; it has not changed since then.
	seen  *coordinationv1.Lease
	since time.Time
	// end ends the term of this node; nil while it does not lead.
	end context.CancelFunc
}

// compete gets the Lease and renews it until ctx is done. Then it gives the Lease up.
func (l *Leader) compete(ctx context.Context) {
	c := &campaign{Leader: l, leases: l.cfg.Client.builtin.Leases(l.cfg.Namespace)}
	for ctx.Err() == nil {
		pause := retryPeriod
		if c.attempt(ctx); c.end == nil {
			// Candidates must not all ask at a time.
			pause += rand.N(retryPeriod)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	if c.end != nil {
		c.stop()
	}
	if c.seen != nil && ptr.Deref(c.seen.Spec.HolderIdentity, "") == string(c.cfg.Node) {
		c.release(ctx)
	}
}

// attempt gets or renews the Lease. It ends the term if another node has the Lease, or if it could
// not be renewed for renewDeadline.
func (c *campaign) attempt(ctx context.Context) {
	deadline := time.Now().Add(renewDeadline)
	if c.end != nil {
		deadline = c.lastRenewed().Add(renewDeadline)
	}
	within, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	holds, err := c.try(within)
	switch {
	case ctx.Err() != nil:
	case holds && c.end == nil:
		var term context.Context
		term, c.end = context.WithCancel(ctx)
		c.lead(term)
	case c.end == nil:
	case err == nil && !holds, !time.Now().Before(deadline):
		if err != nil {
			c.log.Warn("the Lease cannot be renewed", "err", err)
		}
		c.stop()
	}
}

// try writes the Lease with this node as its holder, and reports whether it holds the Lease now.
func (c *campaign) try(ctx context.Context) (holds bool, err error) {
	// The holder writes without reading first, and reads only if that did not work.
	if c.end != nil {
		if holds, _ := c.write(ctx); holds {
			return true, nil
		}
	}
	have, err := c.leases.Get(ctx, LeaseName, metav1.GetOptions{})
	switch {
	case errors.IsNotFound(err):
		have = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: c.cfg.Namespace, Name: LeaseName}}
	case err != nil:
		c.tried("get", err)
		return false, err
	default:
		c.tried("get", nil)
	}
	if c.seen == nil || c.seen.ResourceVersion != have.ResourceVersion {
		c.seen, c.since = have, time.Now()
	}
	return c.write(ctx)
}

// write claims the Lease as it was seen last.
func (c *campaign) write(ctx context.Context) (holds bool, err error) {
	began := time.Now()
	want := c.seen.DeepCopy()
	if !claim(want, c.cfg.Node, began.Sub(c.since), began) {
		return false, nil
	}
	verb, got := "update", want
	if want.ResourceVersion == "" {
		verb = "create"
		got, err = c.leases.Create(ctx, want, metav1.CreateOptions{})
	} else {
		got, err = c.leases.Update(ctx, want, metav1.UpdateOptions{})
	}
	c.tried(verb, err)
	if err != nil {
		return false, err
	}
	c.seen, c.since = got, began
	c.renew(began)
	return true, nil
}

// stop ends the term.
func (c *campaign) stop() {
	c.end()
	c.end = nil
	c.Leader.stop()
}

// release lets another node lead at once.
func (c *campaign) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewDeadline)
	defer cancel()
	want := c.seen.DeepCopy()
	want.Spec.HolderIdentity, want.Spec.LeaseDurationSeconds = new(""), new(int32(1))
	want.Spec.RenewTime = new(metav1.NewMicroTime(time.Now()))
	if _, err := c.leases.Update(ctx, want, metav1.UpdateOptions{}); err != nil {
		c.log.Info("the Lease was not given up: another node leads when it has expired", "err", err)
	}
}
