package daemon

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/kube"
	"strait.io/strait/internal/notify"
)

// rerooted is a replication that only notes the root.
type rerooted struct {
	replication
	root  *authority.PrivateKey
	times int
}

func (r *rerooted) Reroot(k *authority.PrivateKey) { r.root, r.times = k, r.times+1 }

// candidate is a daemon of which only what lets it lead is real.
func candidate(t *testing.T, a AuthorityConfig, pinned ...authority.PublicKey) (d *Daemon, g *rerooted, lends func(token, root string)) {
	t.Helper()
	dir := t.TempDir()
	g = &rerooted{}
	d = &Daemon{
		config: Config{Authority: a, Source: SourceConfig{Kubernetes: &KubernetesConfig{LeaderDir: dir}}}, log: slog.New(slog.DiscardHandler),
		gossip: g, who: who{Cluster: "west"}, wake: notify.New(),
		kube: &kubernetes{namespace: "strait-system", lent: borrow(dir, notify.New()), leader: kube.NewLeader(kube.LeaderConfig{})},
	}
	d.files = d.watchFiles(Config{}, d.wake)
	d.files.pins.Set("", authority.Pins{"west": {Roots: pinned}})
	return d, g, func(token, root string) {
		t.Helper()
		own := filepath.Join(dir, "pod")
		if err := os.RemoveAll(own); err != nil {
			t.Fatal(err)
		}
		if token != "" {
			if err := os.Mkdir(own, 0o700); err != nil {
				t.Fatal(err)
			}
			for name, text := range map[string]string{"token": token, "root.key": root, "alive": ""} {
				if err := os.WriteFile(filepath.Join(own, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		d.kube.(*kubernetes).lent.Look()
	}
}

// TestStand: a daemon can lead while it is lent a token, and where the cluster signs also a root that the
// cluster pins. The token outlives the loan, for the Lease is given up with it.
func TestStand(t *testing.T) {
	root, other := authority.PrivateKey{1}, authority.PrivateKey{2}
	d, g, lends := candidate(t, AuthorityConfig{PinsFile: "/p"}, root.Public())
	for _, c := range []struct {
		what, token, root string
		may               bool
		has               *authority.PrivateKey
		message           string
	}{
		{"nothing", "", "", false, nil, ""},
		{"a token alone", "a", "", false, nil, ""},
		{"both", "a", root.Base64(), true, &root, ""},
		{"a renewed token", "b", root.Base64(), true, &root, ""},
		{"a root that is not pinned", "b", other.Base64(), false, nil, "does not pin it"},
		{"no root", "b", "garbage", false, nil, "the root that is lent"},
		{"both again", "c", root.Base64(), true, &root, ""},
		{"nothing again", "", "", false, nil, ""},
	} {
		lends(c.token, c.root)
		problems := d.followLoan()
		if d.mayLead() != c.may || (g.root == nil) != (c.has == nil) || g.root != nil && *g.root != *c.has {
			t.Errorf("%s: may lead %v, root %v", c.what, d.mayLead(), g.root)
		}
		if (c.message == "") != (len(problems) == 0) || c.message != "" && !strings.Contains(problems[0].Message, c.message) {
			t.Errorf("%s: problems %v, want %q", c.what, problems, c.message)
		}
	}
	if g.times != 4 {
		t.Errorf("gossip got it %d times", g.times)
	}
	if got := d.kube.(*kubernetes).lent.bearer(); got != "c" {
		t.Errorf("the Lease would be given up with the token %q", got)
	}
	d.files.pins.Set("", authority.Pins{"west": {Roots: []authority.PublicKey{other.Public()}}})
	lends("d", root.Base64())
	if d.followLoan(); d.mayLead() || g.root != nil {
		t.Error("it goes on with a root that is not pinned any more")
	}

	unsigned, g, lends := candidate(t, AuthorityConfig{})
	lends("a", "")
	if ps := unsigned.followLoan(); !unsigned.mayLead() || g.times > 0 || len(ps) > 0 {
		t.Errorf("where the cluster signs nothing: %v, passed on %d times, %v", unsigned.mayLead(), g.times, ps)
	}
	d.kube.(*kubernetes).lent, d.config.Authority = nil, AuthorityConfig{}
	if ps := d.followLoan(); !d.mayLead() || len(ps) > 0 {
		t.Errorf("with an account of its own that may write: %v, %v", d.mayLead(), ps)
	}
}

// TestNobodyLeads: every daemon reports it after a while, and not while a live one can lead.
func TestNobodyLeads(t *testing.T) {
	d, _, lends := candidate(t, AuthorityConfig{})
	var state clustermesh.State
	node := func(cluster, name string) clustermesh.Origin {
		return clustermesh.Origin{Cluster: clustermesh.ClusterName(cluster), Node: clustermesh.NodeName(name)}
	}
	heard := func(contact clustermesh.Contact, cluster string, follower bool) {
		o := node(cluster, "n2")
		state = clustermesh.State{
			Records:  clustermesh.NewByOrigin(map[clustermesh.Origin]clustermesh.Record{o: {Content: clustermesh.Content{Node: &clustermesh.Node{Follower: follower}}}}),
			Contacts: clustermesh.NewByOrigin(map[clustermesh.Origin]clustermesh.Contact{o: contact}),
		}
	}
	now := time.Now()
	heard(clustermesh.Alive, "west", true)
	if ps := d.leaderless(state, now); len(ps) > 0 {
		t.Errorf("at once: %v", ps)
	}
	if ps := d.leaderless(state, now.Add(time.Minute)); len(ps) != 1 || ps[0].Code != "STR6105" || !strings.Contains(ps[0].Object, "strait-system/strait-leader") {
		t.Errorf("after a minute: %v", ps)
	}
	heard(clustermesh.Alive, "west", false)
	if ps := d.leaderless(state, now.Add(time.Minute)); len(ps) > 0 {
		t.Errorf("another can lead: %v", ps)
	}
	heard(clustermesh.Alive, "west", true)
	lends("a", "")
	d.followLoan()
	if ps := d.leaderless(state, now.Add(time.Hour)); len(ps) > 0 {
		t.Errorf("it can lead itself: %v", ps)
	}
}
