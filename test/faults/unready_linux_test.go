package faults

import (
	"testing"
	"time"

	"strait.io/strait/internal/testutil"
)

// withGrace is a machine whose Service leads to both pods, and whose daemon has started.
func withGrace(t *testing.T, grace string) (*machine, *process, clients) {
	t.Helper()
	m := newMachine(t)
	m.setGrace(grace)
	m.echo(t, pods{ready: ab})
	life := m.start(t)
	return m, life, m.clients(t)
}

func (m *machine) setGrace(grace string) { m.config["bpf"].(tree)["unreadyGrace"] = grace }

// A pod that is not ready for a moment keeps its connected UDP sockets.
func TestReadinessBlip(t *testing.T) {
	m := newMachine(t)
	m.echo(t, pods{ready: ab}) // and the default grace period
	m.start(t)
	c := m.clients(t)
	for range 5 {
		m.echo(t, pods{ready: b, unready: a})
		m.leadsTo(t, b)
		answers(t, "while it is not ready", c.a, podA)
		m.echo(t, pods{ready: ab})
		m.leadsTo(t, ab)
		answers(t, "ready again", c.a, podA)
	}
	c.rest(t)
}

// A pod that stays not ready loses its sockets after the grace period, and not before.
func TestUnreadyForLong(t *testing.T) {
	m, _, c := withGrace(t, "2s")
	before := time.Now()
	m.echo(t, pods{ready: b, unready: a})
	testutil.Eventually(t, patience, c.a.isClosed)
	if took := time.Since(before); took < 2*time.Second {
		t.Errorf("closed after %v, before the grace period ended", took)
	}
	c.rest(t)
}

// A pod that leaves has no grace period.
func TestLeavesAtOnce(t *testing.T) {
	for name, story := range map[string][]pods{
		"deleted":                 {{ready: b}},
		"terminating":             {{ready: b, leaving: a}},
		"not ready, then deleted": {{ready: b, unready: a}, {ready: b}},
		"not ready, then leaving": {{ready: b, unready: a}, {ready: b, leaving: a}},
	} {
		t.Run(name, func(t *testing.T) {
			m, _, c := withGrace(t, "1h")
			for i, p := range story {
				if i > 0 {
					answers(t, "while it is not ready", c.a, podA)
				}
				m.echo(t, p)
				m.leadsTo(t, b)
			}
			testutil.Eventually(t, patience, c.a.isClosed)
			c.rest(t)
		})
	}
}

// A daemon that is killed within the grace period closes the sockets in its next life.
func TestRestartWithinGrace(t *testing.T) {
	m, life, c := withGrace(t, "1h")
	m.echo(t, pods{ready: b, unready: a})
	m.leadsTo(t, b)
	life.kill(t)
	answers(t, "without a daemon", c.a, podA)
	m.setGrace("1s")
	m.start(t)
	testutil.Eventually(t, patience, c.a.isClosed)
	c.rest(t)
}

// A pod of another cluster that carried the traffic keeps its sockets when a nearer one is ready
// again, until it leaves.
func TestFailback(t *testing.T) {
	m := newMachine(t)
	m.setGrace("0s")
	m.config["locality"] = tree{"ramp": "1s"} // the default is longer than a test should be
	far := m.elsewhere(t)
	far.echo(t, pods{ready: a})
	m.echo(t, pods{unready: b})
	m.start(t)
	far.start(t)
	s := m.newPod(t, podA, podB).openTo(m.leadsTo(t, a), podA)
	for range 3 {
		m.echo(t, pods{ready: b})
		m.leadsTo(t, b)
		answers(t, "a nearer pod is ready", s, podA)
		m.echo(t, pods{unready: b})
		m.leadsTo(t, a)
	}
	m.echo(t, pods{ready: b})
	m.leadsTo(t, b)
	far.echo(t, pods{})
	testutil.Eventually(t, patience, s.isClosed)
}
