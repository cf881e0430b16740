package plan

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/problem"
)

// Change is something that may happen to the clusterset.
type Change struct {
	text  string
	apply func(clustermesh.State) (clustermesh.State, error)
	// reason is what Reason returns; nil if the change takes no endpoint away.
	reason func(cluster, node string) string
}

func (c Change) String() string { return c.text }

// Reason returns why endpoints on a node would serve no client after the change; empty if the
// change itself does not take them away.
func (c Change) Reason(cluster, node string) string {
	if c.reason == nil {
		return ""
	}
	return c.reason(cluster, node)
}

// Changes says how to write a Change.
const Changes = `"cluster NAME down", "node CLUSTER/NAME dead", "drain CLUSTER", "drain CLUSTER/NODE" or "scale CLUSTER to NUMBER"`

// ParseChange reads a Change from words.
func ParseChange(text string) (Change, error) {
	words := strings.Fields(text)
	verb := func(n int, at int, want string) bool { return len(words) == n && words[at] == want }
	c := Change{text: strings.Join(words, " ")}
	switch {
	case verb(3, 0, "cluster") && words[2] == "down":
		c.apply = onNodes(words[1], "", down)
		c.reason = func(cluster, _ string) string { return reasonIf(cluster == words[1], "cluster %s is down", cluster) }
	case verb(3, 0, "node") && words[2] == "dead" && strings.Contains(words[1], "/"):
		cluster, node, _ := strings.Cut(words[1], "/")
		c.apply = onNodes(cluster, node, down)
		c.reason = func(ofCluster, of string) string {
			return reasonIf(ofCluster == cluster && of == node, "node %s is dead", words[1])
		}
	case verb(2, 0, "drain"):
		cluster, node, _ := strings.Cut(words[1], "/")
		c.apply = func(s clustermesh.State) (clustermesh.State, error) { return drain(s, cluster, node) }
	case verb(4, 0, "scale") && words[2] == "to":
		n, err := strconv.Atoi(words[3])
		if err != nil || n < 0 || n > maxScale {
			return Change{}, problem.Refuse(fmt.Sprintf("write for example \"scale %s to 3\"", words[1]), "%q is not a number of endpoints from 0 to %d", words[3], maxScale)
		}
		c.apply = func(s clustermesh.State) (clustermesh.State, error) { return scale(s, words[1], n) }
	default:
		return Change{}, problem.Refuse("write "+Changes, "%q is no change that strait knows", text)
	}
	return c, nil
}

// reasonIf returns a reason, or nothing if it does not apply.
func reasonIf(applies bool, format, name string) string {
	if !applies {
		return ""
	}
	return fmt.Sprintf(format, name)
}

const maxScale = 10_000

// Apply returns the state after the change. The state itself stays as it is.
func (c Change) Apply(s clustermesh.State) (clustermesh.State, error) {
	return c.apply(s)
}

// known returns an error if nothing is known of a cluster, or of a node of it if one is named.
func known(s clustermesh.State, cluster, node string) error {
	if !slices.Contains(s.Clusters(), clustermesh.ClusterName(cluster)) {
		return problem.Refuse("strait members lists them", "no cluster is called %q", cluster)
	}
	if _, is := s.Records.Lookup(clustermesh.Origin{Cluster: clustermesh.ClusterName(cluster), Node: clustermesh.NodeName(node)}); node != "" && !is {
		return problem.Refuse("strait nodes lists them", "cluster %s has no node %q", cluster, node)
	}
	return nil
}

// onNodes changes the endpoints of a node, or of all of a cluster.
func onNodes(cluster, node string, change func(*clustermesh.Endpoint)) func(clustermesh.State) (clustermesh.State, error) {
	return func(s clustermesh.State) (clustermesh.State, error) {
		if err := known(s, cluster, node); err != nil {
			return s, err
		}
		records := s.Records.Draft()
		for o, r := range s.Records.Of(clustermesh.ClusterName(cluster)) {
			es := slices.Clone(r.Content.Endpoints)
			for i := range es {
				if node == "" || string(es[i].Node) == node {
					change(&es[i])
				}
			}
			r.Content.Endpoints = es
			records.Set(o, r)
		}
		s.Records = records.Share()
		return s, nil
	}
}

// down makes an endpoint one that Kubernetes still lists, and that serves no client.
func down(e *clustermesh.Endpoint) { e.Ready, e.Serving = false, false }

func drain(s clustermesh.State, cluster, node string) (clustermesh.State, error) {
	if err := known(s, cluster, node); err != nil {
		return s, err
	}
	o := clustermesh.Origin{Cluster: clustermesh.ClusterName(cluster), Node: clustermesh.NodeName(node)}
	r := s.Records.Get(o)
	r.Origin = o
	switch {
	case node == "":
		r.Content.Drain = &clustermesh.Drain{}
	case r.Content.Node != nil:
		n := *r.Content.Node
		n.Drain, r.Content.Node = &clustermesh.Drain{}, &n
	}
	s.Records = s.Records.With(o, r)
	return s, nil
}

// scale makes each service of a cluster have n ready endpoints: it keeps the first, and adds more like
// the last.
func scale(s clustermesh.State, cluster string, n int) (clustermesh.State, error) {
	if err := known(s, cluster, ""); err != nil {
		return s, err
	}
	records := s.Records.Draft()
	has, last := map[clustermesh.ServiceName]int{}, map[clustermesh.ServiceName]place{}
	for _, o := range s.Origins() {
		if string(o.Cluster) != cluster {
			continue
		}
		r := s.Records.Get(o)
		var kept []clustermesh.Endpoint
		for _, e := range r.Content.Endpoints {
			if has[e.Service]++; has[e.Service] <= n {
				e.Ready, e.Serving, e.Terminating = true, true, false
				last[e.Service] = place{o, e}
				kept = append(kept, e)
			}
		}
		r.Content.Endpoints = kept
		records.Set(o, r)
	}
	next := uint32(0)
	for _, service := range slices.SortedFunc(maps.Keys(last), clustermesh.ServiceName.Compare) {
		at := last[service]
		for i := has[service]; i < n; i++ {
			next++
			r, e := records.Get(at.origin), at.endpoint
			e.Addr, e.Pod = invented(next), fmt.Sprintf("new-%d", i+1-has[service])
			r.Content.Endpoints = append(r.Content.Endpoints, e)
			records.Set(at.origin, r)
		}
	}
	s.Records = records.Share()
	for _, r := range s.Records.Of(clustermesh.ClusterName(cluster)) {
		slices.SortStableFunc(r.Content.Endpoints, func(a, b clustermesh.Endpoint) int { return a.Service.Compare(b.Service) })
	}
	return s, nil
}

// place is an endpoint and the record that has it.
type place struct {
	origin   clustermesh.Origin
	endpoint clustermesh.Endpoint
}

// invented returns an address for a pod that there is not: one of 198.18.0.0/15, which is for tests
// (RFC 2544).
func invented(n uint32) netip.Addr {
	n &= 1<<17 - 1
	return netip.AddrFrom4([4]byte{198, 18 + byte(n>>16), byte(n >> 8), byte(n)})
}
