package object

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/problem"
)

// The annotations of a Service or its ServiceExport that decide where connections go.
const (
	AnnotationLocality = "service.strait.io/locality"
	AnnotationPrefer   = "service.strait.io/prefer"
	AnnotationWeights  = "service.strait.io/weights"
	AnnotationMinReady = "service.strait.io/min-ready"
)

// AnnotationDrain is that of clustermesh, for Services, ServiceExports, Nodes and strait's Namespace.
const AnnotationDrain = clustermesh.AnnotationDrain

var routingNames = []string{AnnotationLocality, AnnotationPrefer, AnnotationWeights, AnnotationMinReady, AnnotationDrain}

// note is an annotation and the object that has it.
type note struct {
	key, value string
	report     *objectReport
}

func (n note) invalid(message, try string) {
	n.report.problem(problem.ValueInvalid, path(n.key), message, try)
}

// noted are the annotations of some objects that mean the same thing. If several have a key, the first
// counts.
type noted []struct {
	annotations map[string]string
	report      *objectReport
}

func (ns noted) get(key string) (note, bool) {
	var out note
	found := false
	for _, n := range ns {
		v, ok := n.annotations[key]
		switch {
		case !ok:
		case !found:
			out, found = note{key, v, n.report}, true
		case strings.TrimSpace(v) != strings.TrimSpace(out.value):
			n.report.warning(problem.AnnotationIgnored, path(key), fmt.Sprintf("%q contradicts %q of the %s, which is used", v, out.value, out.report.kind), "delete one of the two annotations")
		}
	}
	return out, found
}

// readRouting returns what annotations ask of the choice; nil if they ask for nothing.
func readRouting(ns noted) *clustermesh.Routing {
	var r clustermesh.Routing
	if n, ok := ns.get(AnnotationLocality); ok {
		r.Tiers = readTiers(n)
	}
	if n, ok := ns.get(AnnotationPrefer); ok {
		r.Prefer = readPrefer(n)
	}
	if n, ok := ns.get(AnnotationWeights); ok {
		r.Weights = readWeights(n)
	}
	if n, ok := ns.get(AnnotationMinReady); ok {
		r.MinReady = readMinReady(n)
	}
	if n, ok := ns.get(AnnotationDrain); ok {
		r.Drain = readDrain(n)
	}
	if !r.Says() && r.Drain == nil {
		return nil
	}
	return &r
}

// list splits a value at commas, without blanks and empty elements.
func list(value string) (out []string) {
	for s := range strings.SplitSeq(value, ",") {
		if s = strings.TrimSpace(s); s != "" {
			out = append(out, s)
		}
	}
	return out
}

func readTiers(n note) (out []string) {
	for _, t := range list(strings.ToLower(n.value)) {
		at := slices.Index(clustermesh.TierNames, t)
		switch {
		case at < 0:
			n.invalid(fmt.Sprintf("%q is not a tier: left out", t), "write some of "+strings.Join(clustermesh.TierNames, ","))
		case len(out) > 0 && at <= slices.Index(clustermesh.TierNames, out[len(out)-1]):
			n.invalid(fmt.Sprintf("%s does not come after %s: left out", t, out[len(out)-1]), "write the tiers from near to far: "+strings.Join(clustermesh.TierNames, ","))
		default:
			out = append(out, t)
		}
	}
	return out
}

func (n note) cluster(name string) (clustermesh.ClusterName, bool) {
	if err := clustermesh.CheckName(name); err != nil {
		n.invalid(err.Error()+": left out", "write the names of clusters, as strait members shows them")
		return "", false
	}
	return clustermesh.ClusterName(name), true
}

func readPrefer(n note) (out []clustermesh.ClusterName) {
	for _, text := range list(n.value) {
		c, ok := n.cluster(text)
		switch {
		case !ok:
		case len(out) == clustermesh.MaxClusters:
			n.invalid(fmt.Sprintf("%s is one cluster too many: left out", c), fmt.Sprintf("name at most %d", clustermesh.MaxClusters))
		case !slices.Contains(out, c):
			out = append(out, c)
		}
	}
	return out
}

func readWeights(n note) (out []clustermesh.ClusterWeight) {
	const try = `write CLUSTER=WEIGHT,CLUSTER=WEIGHT, such as "us-east=90,us-west=10"`
	total := uint64(0)
	for _, text := range list(n.value) {
		name, number, ok := strings.Cut(text, "=")
		w, err := strconv.ParseUint(strings.TrimSpace(number), 10, 32)
		if !ok || err != nil || w > clustermesh.MaxWeight {
			n.invalid(fmt.Sprintf("%q is not a cluster with a weight from 0 to %d: left out", text, clustermesh.MaxWeight), try)
			continue
		}
		c, ok := n.cluster(strings.TrimSpace(name))
		switch {
		case !ok:
		case slices.ContainsFunc(out, func(w clustermesh.ClusterWeight) bool { return w.Cluster == c }):
			n.invalid(fmt.Sprintf("%s has two weights: the first is used", c), "write each cluster once")
		case len(out) == clustermesh.MaxClusters:
			n.invalid(fmt.Sprintf("%s is one cluster too many: left out", c), fmt.Sprintf("name at most %d", clustermesh.MaxClusters))
		default:
			total += w
			out = append(out, clustermesh.ClusterWeight{Cluster: c, Weight: uint32(w)})
		}
	}
	if len(out) > 0 && total == 0 {
		n.invalid("all weights are 0: not used", "give one cluster a weight above 0")
		return nil
	}
	slices.SortFunc(out, func(a, b clustermesh.ClusterWeight) int { return cmp.Compare(a.Cluster, b.Cluster) })
	return out
}

func readMinReady(n note) (m clustermesh.MinReady) {
	text := strings.TrimSpace(n.value)
	percent, is := strings.CutSuffix(text, "%")
	v, err := strconv.ParseUint(strings.TrimSpace(percent), 10, 32)
	switch {
	case err != nil || v == 0 || is && v > 100 || v > 100_000:
		n.invalid(fmt.Sprintf("%q is neither a number of endpoints nor a percentage: not used", n.value), `write a number such as "3", or "30%"`)
	case is:
		m.Percent = uint32(v)
	default:
		m.Count = uint32(v)
	}
	return m
}

// readDrain returns nil if the value means no drain, or is invalid: what is not understood takes
// nothing out of use.
func readDrain(n note) *clustermesh.Drain {
	text := strings.TrimSpace(n.value)
	switch strings.ToLower(text) {
	case "", "false":
		return nil
	case "true":
		return &clustermesh.Drain{}
	}
	start, length, ok := strings.Cut(text, "/")
	since, err := time.Parse(time.RFC3339, start)
	over, err2 := time.ParseDuration(length)
	if !ok || err != nil || err2 != nil || over < 0 || over > clustermesh.MaxDrainOver || since.Unix() < 0 {
		n.invalid(fmt.Sprintf("%q does not say how to drain: not drained", n.value),
			`write "true", or a time and a duration of at most 24h such as "2026-11-23T12:00:00Z/5m"; strait cluster drain writes it`)
		return nil
	}
	return &clustermesh.Drain{Since: since.Unix(), Over: int64(over / time.Second)}
}

// readAccept returns which clusters' Services the annotated namespaces accept.
func (l *reader) readAccept(objs []*Namespace) clustermesh.Accept {
	out := clustermesh.Accept{}
	for _, obj := range objs {
		value, says := obj.annotations[clustermesh.AnnotationAccept]
		if !says {
			continue
		}
		n := note{clustermesh.AnnotationAccept, value, l.report.on("Namespace", "", obj.Name)}
		switch strings.TrimSpace(value) {
		case string(clustermesh.AcceptAll):
			out[obj.Name] = []clustermesh.ClusterName{clustermesh.AcceptAll}
		case "", "none":
			out[obj.Name] = nil
		default:
			// What is left of a list with mistakes counts: to accept all instead would be worse.
			out[obj.Name] = readPrefer(n)
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}
