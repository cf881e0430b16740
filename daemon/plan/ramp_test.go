package plan_test

import (
	"net/netip"
	"reflect"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/locality"
	"strait.io/strait/daemon/plan"
	"strait.io/strait/datapath"
)

// ramping is the default configuration, as far as ramps go.
var ramping = plan.Config{CIDRs: []netip.Prefix{cidr}, Mesh: true, Locality: plan.Locality{Factor: 1.4, Ramp: 10 * time.Second}}

func ready(c *clustermesh.Content) { c.Endpoints[0].Ready, c.Endpoints[0].Serving = true, true }

// TestRampBegins: a ramp begins when more is wanted, however long ago the service was last planned.
func TestRampBegins(t *testing.T) {
	p := newSeries(plan.Self{Cluster: "a", Node: "n1"}, ramping)
	s, start := clusterset(), time.Unix(1_000_000, 0)
	at := func(after time.Duration, want string, next time.Duration) {
		t.Helper()
		p.Now = start.Add(after)
		r := p.plan(s)
		if got := where(r); got != want || r.Next != next {
			t.Errorf("after %s: %s, next plan in %s; want %s, %s", after, got, r.Next, want, next)
		}
	}
	edit(&s, "a", "n1", unready)
	edit(&s, "a", "n2", unready)
	at(0, "b=50% c=50%", 0)
	edit(&s, "a", "n1", ready)
	edit(&s, "a", "n2", ready)
	at(time.Hour, "b=50% c=50%", time.Second)
	at(time.Hour+time.Second, "a=10% b=45% c=45%", time.Second)
	at(time.Hour+5*time.Second, "a=50% b=25% c=25%", time.Second)
	at(time.Hour+10*time.Second, "a=100%", 0)
}

// TestRampKeepsTime: a turn is always a little late. What ramps is planned once a second all the same, and
// a drain as often as it says.
func TestRampKeepsTime(t *testing.T) {
	const late = 5 * time.Millisecond
	for what, change := range map[string]func(*clustermesh.State){
		"a ramp": func(s *clustermesh.State) {
			edit(s, "a", "n1", ready)
			edit(s, "a", "n2", ready)
		},
		"a drain": func(s *clustermesh.State) {
			edit(s, "b", "", func(c *clustermesh.Content) { c.Drain = &clustermesh.Drain{Since: 1_000_000, Over: 10} })
		},
	} {
		p := newSeries(plan.Self{Cluster: "a", Node: "n1"}, ramping)
		s, now := clusterset(), time.Unix(1_000_000, 300e6)
		edit(&s, "a", "n1", unready)
		edit(&s, "a", "n2", unready)
		p.Now = now
		p.plan(s)
		change(&s)
		turns := 0
		for next := time.Duration(0); turns == 0 || next > 0; turns++ {
			p.Now = now
			if next = p.plan(s).Next; next > 2*time.Second {
				t.Errorf("%s is planned again after %s", what, next)
			}
			now = now.Add(next + late)
		}
		if turns < 10 || turns > 13 {
			t.Errorf("%s takes %d turns in 10 s, want one a second", what, turns)
		}
	}
}

// TestNoRampForWords: when a Service asks for something else, that is so at once. What was near before says
// nothing of what is near now: healthy pods nearby must not lose everything for a while.
func TestNoRampForWords(t *testing.T) {
	p := newSeries(plan.Self{Cluster: "a", Node: "n1"}, ramping)
	s, now := clusterset(), time.Unix(1_000_000, 0)
	for _, tiers := range [][]string{nil, {"cluster", "clusterset"}, nil, {"clusterset"}, {"region", "clusterset"}} {
		edit(&s, "a", "", func(c *clustermesh.Content) { c.Exports[0].Routing = &clustermesh.Routing{Tiers: tiers} })
		want := "a=100%"
		if len(tiers) == 1 {
			want = "a=33% b=33% c=33%"
		}
		now = now.Add(time.Minute)
		p.Now = now
		if r := p.plan(s); where(r) != want || r.Next != 0 {
			t.Errorf("tiers %q: %s, next plan in %s; want %s at once", tiers, where(r), r.Next, want)
		}
	}
}

// TestRampNeedsToKnow: what is learned late was there before. A daemon that restarts hears of the nearest
// endpoints after others, and must not ramp.
func TestRampNeedsToKnow(t *testing.T) {
	for _, learning := range []bool{true, false} {
		p := newSeries(plan.Self{Cluster: "a", Node: "n1"}, ramping)
		whole, part := clusterset(), clusterset()
		edit(&part, "a", "n1", func(c *clustermesh.Content) { c.Endpoints = nil })
		edit(&part, "a", "n2", func(c *clustermesh.Content) { c.Endpoints = nil })
		p.Now = time.Unix(1_000_000, 0)
		p.Learning = learning
		p.plan(part)
		p.Learning = false
		want := map[bool]string{true: "a=100%", false: "b=50% c=50%"}[learning]
		if got := where(p.plan(whole)); got != want {
			t.Errorf("learning %v: %s, want %s", learning, got, want)
		}
	}
}

// TestDrainPace: while a drain takes more, it is planned again about a hundred times, however long it
// takes, and when it ends. A service that changes meanwhile is planned in the same turns.
func TestDrainPace(t *testing.T) {
	start := time.Unix(1_000_000, 300e6)
	for _, tc := range []struct {
		over  time.Duration
		since time.Duration // after the first plan
		turns int           // at most
	}{
		{10 * time.Second, 0, 10},
		{5 * time.Minute, 0, 100},
		{time.Hour, 0, 101},
		{time.Hour + time.Second, 0, 101},
		{24 * time.Hour, 0, 1440},         // one a minute
		{10 * time.Second, time.Hour, 70}, // one a minute until it begins
		{0, 0, 0},                         // at once
	} {
		p := newSeries(plan.Self{Cluster: "a", Node: "n1"}, ramping)
		s := clusterset()
		edit(&s, "a", "", func(c *clustermesh.Content) {
			c.Drain = &clustermesh.Drain{Since: start.Add(tc.since).Unix(), Over: int64(tc.over / time.Second)}
		})
		now, turns := start, 0
		for ; ; turns++ {
			p.Now = now
			r := p.plan(s)
			if r.Next == 0 {
				if got := where(r); got != "b=50% c=50%" {
					t.Errorf("a drain over %s: the last plan has %s", tc.over, got)
				}
				break
			}
			if now = now.Add(r.Next); now.Nanosecond() != 0 {
				t.Fatalf("a drain over %s is planned at %s, apart from others", tc.over, now)
			}
		}
		if late := now.Sub(start.Truncate(time.Second).Add(tc.since + tc.over)); turns > tc.turns || late < 0 || late > 2*time.Second {
			t.Errorf("a drain over %s in %s: %d turns, want at most %d; the last was %s late", tc.over, tc.since, turns, tc.turns, late)
		}
	}
}

// TestClockSetBack: a drain goes on when the machine's clock is set back.
func TestClockSetBack(t *testing.T) {
	start := time.Unix(1_000_000, 0)
	p := newSeries(plan.Self{Cluster: "a", Node: "n1"}, ramping)
	s := clusterset()
	edit(&s, "a", "", func(c *clustermesh.Content) { c.Drain = &clustermesh.Drain{Since: start.Unix(), Over: 3600} })
	p.Now = start
	p.plan(s)
	p.Now = start.Add(-24 * time.Hour)
	if r := p.plan(s); r.Next <= 0 || r.Next > clustermesh.MaxDrainNext {
		t.Errorf("the next plan is in %s", r.Next)
	}
}

// TestFlapWrites: a frontend is written when endpoints fail that carry something, and at most once a
// second when they are back, however often they come and go.
func TestFlapWrites(t *testing.T) {
	for _, tc := range []struct {
		period time.Duration // of coming and going
		lag    time.Duration // if not 0, a pod on another node does the same so much later
		most   int           // writes in a minute
	}{
		{200 * time.Millisecond, 0, 1}, // never ready for long enough to get anything
		{800 * time.Millisecond, 100 * time.Millisecond, 1},
		{700 * time.Millisecond, 0, 1}, // ready again when what was due before would be planned
		{time.Second, 0, 1},
		{4 * time.Second, 0, 2 * 15},  // after a second 10 %, and then nothing
		{20 * time.Second, 0, 10 * 3}, // ten steps, and then nothing, three times
	} {
		p := newSeries(plan.Self{Cluster: "a", Node: "n1"}, ramping)
		s, start := clusterset(), time.Unix(1_000_000, 0)
		both := tc.lag > 0
		edit(&s, "a", "n2", unready)
		writes := 0
		var last []datapath.Frontend
		for at := time.Duration(0); at < time.Minute; at += 100 * time.Millisecond {
			change := ready
			if at%tc.period < tc.period/2 {
				change = unready
			}
			edit(&s, "a", "n1", change)
			if later := at - tc.lag; both && later >= 0 {
				change = ready
				if later%tc.period < tc.period/2 {
					change = unready
				}
				edit(&s, "a", "n2", change)
			}
			p.Now = start.Add(at)
			if r := p.plan(s); !reflect.DeepEqual(last, r.Desired.Frontends) {
				last = r.Desired.Frontends
				writes++
			}
		}
		if writes > tc.most {
			t.Errorf("every %s: a frontend was written %d times in a minute, want at most %d", tc.period, writes, tc.most)
		}
	}
}

// The kernel takes every weight that package locality gives.
func TestMaxWeight(t *testing.T) {
	if locality.MaxWeight > datapath.MaxWeight {
		t.Errorf("locality gives weights up to %d, the kernel takes %d", locality.MaxWeight, datapath.MaxWeight)
	}
}
