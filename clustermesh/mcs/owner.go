package mcs

import (
	"fmt"
	"math"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/written"
)

// The MCS API leaves room for conditions of other types. Those of strait say what the owner of a Service
// must know: whether its own cluster bears it, whether any does, and whether what is known is of now.
const (
	ownTypes = "strait.io/"
	// LocalBackends, of an export: the cluster's own endpoints bear what they should.
	LocalBackends = ownTypes + "LocalBackends"
	// Backends, of an import: there is an endpoint that can be used.
	Backends = ownTypes + "Backends"
	// ClustersHeard, of an import: all exporting clusters are heard, so none is held.
	ClustersHeard = ownTypes + "ClustersHeard"
)

// Reasons of these conditions.
const (
	sufficient  = "Sufficient"
	spilling    = "Spilling"
	noLocal     = "NoLocalBackends"
	available   = "Available"
	noBackends  = "NoBackends"
	allHeard    = "AllHeard"
	clusterHeld = "ClusterHeld"
)

// Local is what the cluster's own endpoints bear of a service.
type Local struct {
	// Expected is how many would be used if nothing was wrong with them, and Healthy how many can be.
	Expected, Healthy int
	// Share is which part of the cluster's new connections they get, 0 to 1, and Whole which they would
	// get if nothing was wrong with any of them.
	Share, Whole float64
	// Port is the port that this is about, if other ports fare better; else empty.
	Port string
	// Others are the other clusters that get new connections, those that get most first.
	Others []clustermesh.ClusterName
	// Headless: clients choose among all endpoints, so nothing spills.
	Headless bool
}

// spillsFrom is how much of its share a cluster can lose before that is a spill: more than what is
// rounded away.
const spillsFrom = 0.005

// localBackends returns the condition LocalBackends.
func localBackends(s clustermesh.ServiceName, l Local) metav1.Condition {
	c := metav1.Condition{Type: LocalBackends, Status: metav1.ConditionFalse}
	var what string
	switch {
	case l.Healthy == 0:
		c.Reason, what = noLocal, "This cluster has no endpoint"
		if l.Expected > 0 {
			what = fmt.Sprintf("None of this cluster's %d endpoints can be used", l.Expected)
		}
		what += onPort(l) + ": " + instead(l)
	case l.Whole-l.Share >= spillsFrom:
		c.Reason = spilling
		what = fmt.Sprintf("%d of this cluster's %d endpoints can be used%s: they get %s of its new connections instead of %s, and %s the rest",
			l.Healthy, l.Expected, onPort(l), percent(l.Share), percent(l.Whole), listed(l.Others))
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, sufficient, "This cluster's own endpoints bear what they should."
		return c
	}
	c.Message = fmt.Sprintf("%s. strait explain %s has the reason for each.", what, s)
	return c
}

func onPort(l Local) string {
	if l.Port == "" {
		return ""
	}
	return " on port " + l.Port
}

// instead says what becomes of connections for which the cluster has no endpoint.
func instead(l Local) string {
	switch {
	case len(l.Others) == 0 && l.Headless:
		return "the name resolves to nothing"
	case len(l.Others) == 0:
		return "new connections are refused"
	case l.Headless:
		return "the name resolves to those of " + listed(l.Others)
	}
	return "new connections go to " + listed(l.Others)
}

func percent(share float64) string { return fmt.Sprintf("%.0f %%", math.Round(100*share)) }

// importNews returns the conditions Backends and ClustersHeard; none where nothing is imported. What is
// not known stays as it was.
func (d *differ) importNews(have []metav1.Condition) (out []metav1.Condition) {
	uncertain := d.uncertain()
	if d.barred() || !d.wanted && !uncertain {
		return nil
	}
	was := func(h metav1.Condition) bool { return h.Type == Backends }
	if n := slices.IndexFunc(have, was); uncertain && n >= 0 {
		out = append(out, have[n])
	} else if !uncertain {
		out = append(out, d.backends())
	}
	var held []clustermesh.ClusterName
	for _, c := range d.exporters() {
		if name := clustermesh.ClusterName(c.Cluster); d.view.Clusters[name] == Held && !d.view.Settled(name) {
			held = append(held, name)
		}
	}
	heard := metav1.Condition{Type: ClustersHeard, Status: metav1.ConditionTrue, Reason: allHeard, Message: "All exporting clusters are heard."}
	if len(held) > 0 {
		heard.Status, heard.Reason = metav1.ConditionFalse, clusterHeld
		heard.Message = fmt.Sprintf("Not heard: %s. What is known of it from there may be out of date, and stays in force.", listed(held))
	}
	return append(out, heard)
}

func (d *differ) backends() metav1.Condition {
	some := len(d.imp.Backends) > 0
	if d.imp.Type == clustermesh.Headless {
		some = slices.ContainsFunc(d.imp.Endpoints, func(e clustermesh.ClusterEndpoint) bool { return e.Ready && !e.Dead })
	}
	if some {
		return metav1.Condition{Type: Backends, Status: metav1.ConditionTrue, Reason: available, Message: "There are endpoints that can be used."}
	}
	what := "new connections are refused"
	if d.imp.Type == clustermesh.Headless {
		what = "the name resolves to nothing"
	}
	return metav1.Condition{Type: Backends, Status: metav1.ConditionFalse, Reason: noBackends,
		Message: fmt.Sprintf("No cluster has an endpoint that can be used: %s. strait explain %s has the reason for each.", what, d.name)}
}

// stated dates conditions. While the owner's conditions are held, those that are there stay as they are.
// Restated is set if one of the owner's changes.
func (d *differ) stated(have []metav1.Condition, generation int64, all []metav1.Condition) (want []metav1.Condition, restated bool) {
	for _, c := range all {
		c = d.date(have, generation, c)
		if owners(c) && !slices.Contains(have, c) {
			n := slices.IndexFunc(have, func(h metav1.Condition) bool { return h.Type == c.Type })
			if d.have.Hold && n >= 0 {
				c = have[n]
			} else {
				restated = restated || n >= 0
			}
		}
		want = append(want, c)
	}
	return want, restated
}

// owners reports whether a condition is one of strait's own for the owner of a Service.
func owners(c metav1.Condition) bool { return strings.HasPrefix(c.Type, ownTypes) }

// sameConditions reports whether have has all that is wanted, and nothing of strait's besides.
func sameConditions(have, want []metav1.Condition) bool {
	return !slices.ContainsFunc(want, func(c metav1.Condition) bool { return !slices.Contains(have, c) }) &&
		!slices.ContainsFunc(have, func(h metav1.Condition) bool { return (h.Type == conflict || owners(h)) && !slices.Contains(want, h) })
}

// newsEvents returns the Event for a condition of the owner's that turned; none if it is fine from the
// start.
func newsEvents(have []metav1.Condition, c metav1.Condition) []written.Event {
	was := slices.ContainsFunc(have, func(h metav1.Condition) bool { return h.Type == c.Type })
	if !turned(have, c) || c.Status == metav1.ConditionTrue && !was {
		return nil
	}
	return []written.Event{{
		Warning: c.Status == metav1.ConditionFalse, Reason: c.Reason, Message: c.Message, Change: changeOf(have, c), News: true, Service: true,
	}}
}

// Restates reports whether operations change a condition that is there for the owner of a Service.
func Restates(ops []written.Op) bool {
	return slices.ContainsFunc(ops, func(o written.Op) bool { return o.Restates })
}

// LocalNews returns what the owner of a Service must know that no condition holds: those of a global
// service, and of an export of a group without conditions. Ails is false if it fares well.
func (v View) LocalNews(s clustermesh.ServiceName, api API) (e written.Event, ails bool) {
	source, known := find(v.Locals, s, Source[Local].Name)
	export, exports := v.export(s)
	served, writes := api.Foreign[export.Alias]
	if !known || exports && (export.Alias == "" || writes && !served.NoStatus) {
		return written.Event{}, false
	}
	c := localBackends(s, source.Make())
	ails = c.Status == metav1.ConditionFalse
	return written.Event{Warning: ails, Reason: c.Reason, Message: c.Message, News: true}, ails
}
