package daemon

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/daemon/api"
	"strait.io/strait/internal/durable"
	"strait.io/strait/internal/problem"
)

// savedBelief is the file with what authority.believeFile said last. A machine that believed only pinned
// clusters goes on so when that file is gone.
func (d *Daemon) savedBelief() string { return filepath.Join(d.config.StateDir, "believe") }

// whom returns who is to be believed by what believeFile says, now or last; wrong is why it cannot be used.
func whom(said string, unreadable error, last string) (b Believe, wrong error) {
	if unreadable == nil {
		b = Believe(strings.TrimSpace(said))
		if wrong = new(Believe).UnmarshalText([]byte(b)); wrong == nil && b != "" {
			return b, nil
		}
	}
	if Believe(strings.TrimSpace(last)) == BelievePinned {
		return BelievePinned, wrong
	}
	return BelieveAll, wrong
}

// believe puts in force whom this machine believes, and reports what is wrong with believeFile.
func (d *Daemon) believe() []clustermesh.Problem {
	if !d.config.Authority.later() {
		return nil
	}
	pins := d.files.pins.Get()
	said, unreadable := d.files.believe.Now()
	b, wrong := whom(said, unreadable, d.trust.believed)
	// Nothing can be believed by pins that have not come yet.
	if all := b == BelieveAll || len(pins) == 0; all != d.trust.everybody {
		d.log.Info("whom this node believes changed", "everybody", all)
		d.trust.everybody = all
		d.gossip.Believe(all)
		d.pinned(pins)
	}
	if len(pins) > 0 && string(b) != d.trust.believed {
		err := durable.Replace(d.savedBelief(), func(f *os.File) error {
			_, err := f.WriteString(string(b))
			return err
		})
		if err != nil {
			d.log.Warn("cannot save whom this node believes", "error", err)
		}
		d.trust.believed = string(b)
	}
	if wrong == nil {
		return nil
	}
	return []clustermesh.Problem{{
		Code: problem.PinsFile, Object: "pins", Field: "authority.believeFile", File: d.config.Authority.BelieveFile,
		Message: "does not count: " + wrong.Error(), Try: "write pinned, or all, into the ConfigMap strait-believe",
	}}
}

// openGrace is how long a cluster that is alone may have no keys: its leader makes them.
const openGrace = 3 * time.Minute

// open is what it takes to say that everybody who has the gossip key is believed.
type open struct {
	Authority AuthorityConfig
	// Everybody is whether everybody is believed, and Pins whether there are any.
	Everybody, Pins bool
	// Known is how many clusters are pinned, this one among them.
	Known int
	// Kubernetes is whether the cluster has an API server, and Age how long the daemon has been running.
	Kubernetes bool
	Age        time.Duration
	company
}

// company is who else is there.
type company struct {
	// Seeds is whether there are seeds, and Nodes whether there is a record of another node.
	Seeds, Nodes bool
	// Strangers are the clusters that are not pinned, and Unsigned the nodes that are heard and do not
	// sign yet, sorted.
	Strangers, Unsigned []string
	// Outside are prefixes of this cluster's nodes that its pins do not let them have.
	Outside []string
}

// problems reports that everybody is believed; nothing if that was asked for, or nobody else is there.
func (o open) problems(own clustermesh.ClusterName) []clustermesh.Problem {
	alone := !o.Seeds && len(o.Strangers) == 0
	switch {
	case o.Authority.Mode == AuthorityOff || !o.Everybody:
		return nil
	case alone && !o.Kubernetes && !o.Nodes, alone && o.Authority.later() && o.Age < openGrace:
		return nil
	}
	why, try := o.why()
	return []clustermesh.Problem{{
		Code: problem.EverybodyBelieved, Object: "cluster " + string(own), Field: "authority", Warning: true,
		Message: "whoever has the gossip key is believed, whatever cluster or node it says it is: " + why,
		Try:     try + "; if that is what you want, say so: authority.mode: off",
	}}
}

func (o open) why() (why, try string) {
	connect := "pin the clusters with strait clusterset connect, with the contexts of all"
	if !o.Kubernetes {
		connect = "make keys with strait clusterset init, and invite the other clusters (docs/standalone.md)"
	}
	switch a := o.Authority; {
	case !a.on():
		return "this cluster has neither keys nor pins", connect
	case a.PinsFile == "":
		return "this cluster signs what it says, and pins none", "set authority.pinsFile, as strait clusterset init says"
	case a.Believe == BelieveAll:
		return "authority.believe says all", "remove that when all clusters sign"
	case !o.Pins && len(o.Strangers) == 0 && !o.Seeds:
		return "this cluster has no keys yet, which its leader makes", "look at the pods of strait-leader, or make them with strait clusterset connect"
	case !o.Pins:
		return "this cluster has no pins yet", connect
	case o.Seeds && o.Known == 1:
		return "other clusters are joined (gossip.seeds), and none of them is pinned", connect
	case len(o.Strangers) > 0:
		return fmt.Sprintf("%s not pinned", isOrAre(o.Strangers)), connect
	case len(o.Unsigned) > 0:
		return fmt.Sprintf("%s not signed yet", isOrAre(o.Unsigned)), "upgrade the daemons there"
	case len(o.Outside) > 0:
		return fmt.Sprintf("%s not in the pinned pods of this cluster", isOrAre(o.Outside)), "pin its ranges with strait clusterset connect --pods"
	}
	return "the ConfigMap strait-believe does not say pinned", connect
}

// isOrAre lists a few names with the verb.
func isOrAre(names []string) string {
	verb := " is"
	if len(names) > 1 {
		verb = " are"
	}
	if more := len(names) - 3; more > 0 {
		return fmt.Sprintf("%s and %d more are", strings.Join(names[:3], ", "), more)
	}
	return strings.Join(names, ", ") + verb
}

// accompany returns who else is there. Listed are the pins that are in force, whether or not they count.
func accompany(own clustermesh.Origin, s clustermesh.State, listed authority.Pins, sealed map[clustermesh.Origin]bool) (c company) {
	for o := range s.Records {
		if o.Node != "" && o != own {
			c.Nodes = true
		}
		if _, pinned := listed[o.Cluster]; !pinned && o.Cluster != own.Cluster {
			c.Strangers = append(c.Strangers, string(o.Cluster))
		}
		if there := o == own || o.Node == "" || s.Contacts[o] == clustermesh.Alive; there && !sealed[o] {
			c.Unsigned = append(c.Unsigned, o.String())
		}
	}
	slices.Sort(c.Strangers)
	c.Strangers = slices.Compact(c.Strangers)
	slices.Sort(c.Unsigned)
	return c
}

// openness returns what is known of whom this node believes.
func (d *Daemon) openness(s clustermesh.State, local clustermesh.Local) open {
	pins := d.files.pins.Get()
	o := open{Authority: d.config.Authority, Everybody: d.trust.everybody, Pins: len(pins) > 0, Known: len(pins), Kubernetes: d.kube.present(), Age: time.Since(d.born)}
	if !o.Everybody || o.Authority.Mode == AuthorityOff {
		return o // nobody asks who else is there
	}
	var sealed map[clustermesh.Origin]bool
	if o.Authority.later() {
		sealed = d.gossip.Trust().Sealed
		o.Outside = outside(d.who.Cluster, pins[d.who.Cluster], local.Nodes, s)
		d.againIn(openPause)
	}
	o.company = accompany(d.self().Origin(), s, pins, sealed)
	o.Seeds = len(d.config.Gossip.Seeds)+len(d.files.seeds.Get()) > 0
	return o
}

// openPause is how often a daemon looks whether others sign by now: a seal that comes is no news.
const openPause = 5 * time.Second

// believes says for the status whom this node believes.
func (d *Daemon) believes() string {
	switch {
	case d.config.Authority.Mode == AuthorityOff:
		return api.AuthorityOff
	case d.openly.Load():
		return api.AuthorityEverybody
	}
	return api.AuthorityPinned
}
