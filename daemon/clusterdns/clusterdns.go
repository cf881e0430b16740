// Package clusterdns decides whether the cluster's own DNS answers for the clusterset's zone, and what
// to report if it does not.
//
// Inputs are what looks at that DNS showed, what the API server has of it, and a name that pods would
// look up; output is a Problem. Pure. It must not know how a DNS server or an API server is asked.
package clusterdns

import (
	"fmt"
	"strings"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/coredns"
	"strait.io/strait/internal/problem"
)

// Sight is what one look at a DNS server showed.
type Sight uint8

const (
	// Unknown is no answer, or one that does not depend on the zone.
	Unknown Sight = iota
	// Answers: the server answers for the zone.
	Answers
	// Lacks: the server works, and does not know the zone.
	Lacks
)

const (
	// agree is how many successive looks decide. While the pods of CoreDNS are replaced one by one,
	// some answer for the zone, and some do not.
	agree = 3
	// forget is after how many successive looks without an answer nothing is known any more.
	forget = 15
)

// Watch is what is known after some looks. The zero value knows nothing.
type Watch struct {
	verdict, last Sight
	row, silent   int
}

// Note takes what a look showed, and reports whether that changes the verdict.
func (w *Watch) Note(s Sight) (changed bool) {
	before := w.verdict
	switch {
	case s == Unknown:
		if w.silent++; w.silent >= forget {
			*w = Watch{silent: forget}
		}
		return w.verdict != before
	case s != w.last:
		w.last, w.row = s, 0
	}
	w.silent = 0
	if w.row++; w.row >= agree {
		w.verdict, w.row = s, agree
	}
	return w.verdict != before
}

// Lacks reports whether the server does not answer for the zone.
func (w Watch) Lacks() bool { return w.verdict == Lacks }

// Use is for what the zone would be used.
type Use struct {
	// Service is one of another cluster, of which pods of this cluster can look up the name; empty if
	// there is none.
	Service clustermesh.ServiceName
	Zone    string
	// Listens is true if straitd itself answers for the zone, to DNS servers that forward it.
	Listens bool
}

// Problems returns what is wrong with the cluster's DNS. If strait dns setup was run, it is an error.
// Otherwise it is a warning: the clusters may use ClusterSetIPs only by other ways than names.
func (w Watch) Problems(s coredns.Server, u Use) []clustermesh.Problem {
	if !w.Lacks() || u.Service == (clustermesh.ServiceName{}) {
		return nil
	}
	p := clustermesh.Problem{Code: problem.ZoneNotServed, Warning: !s.Marked}
	name := fmt.Sprintf("%s.%s.svc.%s", u.Service.Name, u.Service.Namespace, u.Zone)
	p.Message = fmt.Sprintf("does not answer for %s: in this cluster, names such as %s do not resolve", u.Zone, name)
	old := s.Old()
	switch {
	case u.Listens:
		p.Try = "forward " + u.Zone + " to dns.listen there: docs/kubernetes.md, \"DNS without CoreDNS's multicluster\""
	case old != "":
		p.Code = problem.CoreDNSOld
		p.Message = fmt.Sprintf("runs CoreDNS %s, which is too old to answer for %s: in this cluster, names such as %s do not resolve", old, u.Zone, name)
		p.Try = "upgrade CoreDNS to " + coredns.Since + " or newer, and run strait dns setup --context CONTEXT; or let strait itself answer: docs/kubernetes.md, \"DNS without CoreDNS's multicluster\""
	default:
		p.Try = "run strait dns setup --context CONTEXT"
	}
	if p.Warning {
		p.Try += "; if pods of this cluster need no such names, set dns.probe to off"
	}
	namespace, service, found := strings.Cut(s.Service, "/")
	if !found {
		p.Object = "the cluster's DNS"
		return []clustermesh.Problem{p}
	}
	return []clustermesh.Problem{problem.Object("Service", namespace, service).Problem(p)}
}
