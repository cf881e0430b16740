package node

import (
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/gossip/member"
)

// core is what all parts of a node share.
type core struct {
	cfg      Config
	self     member.Peer // this life of the daemon
	now      time.Time   // of the event that is handled
	started  time.Time   // when the daemon began to run
	actions  Actions
	problems problemBook
	stale    bool // Node.view is out of date
}

// Self returns this life of the daemon.
func (c *core) Self() member.Peer { return c.self }

// pause returns d, randomly varied by ±50 %, so that nodes do not act in step.
func (c *core) pause(d time.Duration) time.Duration {
	return d/2 + time.Duration(c.cfg.Random.Int64N(int64(d)))
}

// Take returns the actions since it was called last.
func (c *core) Take() Actions {
	a := c.actions
	c.actions = Actions{}
	return a
}

func (c *core) log(level Level, message string, args ...any) {
	c.actions.Log = append(c.actions.Log, Line{level, message, args})
}

// touch marks State as out of date, and reports that it changed.
func (c *core) touch() {
	c.stale = true
	c.actions.Changed = true
}

// Report notes a Problem for the time life, or until it is solved if life is 0.
func (c *core) Report(key string, p clustermesh.Problem, life time.Duration, now time.Time) {
	c.now = now
	c.problem(key, p, life)
}

// Solved drops a Problem.
func (c *core) Solved(key string, now time.Time) {
	c.now = now
	c.solved(key)
}

func (c *core) problem(key string, p clustermesh.Problem, life time.Duration) {
	c.note(key, p, false, life)
}

// strange notes a Problem that peers without proof can make, about names and addresses that they choose.
func (c *core) strange(key string, p clustermesh.Problem) { c.note(key, p, true, ProblemLife) }

func (c *core) note(key string, p clustermesh.Problem, strange bool, life time.Duration) {
	p = p.Clean()
	if !c.problems.set(key, p, strange, life, c.now) {
		return
	}
	logged := c.problems.logged
	if strange {
		logged = c.problems.loggedStrange
	}
	if left, ok := logged.take(c.now); ok {
		c.log(Warn, "problem", "code", p.Code, "what", p.String())
		if left == 0 {
			c.log(Warn, "more problems are not logged for up to a minute; see them with: strait status")
		}
	}
	c.actions.Changed = true
}

func (c *core) solved(key string) {
	if c.problems.clear(key) {
		c.actions.Changed = true
	}
}
