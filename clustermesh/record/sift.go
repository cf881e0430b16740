package record

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/problem"
)

// maxUnusable bounds the Problems of one record.
const maxUnusable = 8

// Usable returns the valid part of a content, and a Problem for each object that is left out: a
// record must not vanish because of one bad prefix. If all of the content is valid, Usable returns
// it as it is. It never changes its argument.
func Usable(o clustermesh.Origin, c clustermesh.Content) (clustermesh.Content, []clustermesh.Problem) {
	c, problems, _ := Sift(o, c, math.MaxInt)
	return c, problems
}

// Sift is Usable for what comes from outside: it gives up once it has found more than so many faults, for
// each costs as much as some hundred bytes. It returns how many it found. If they are too many, its other
// results mean nothing.
func Sift(o clustermesh.Origin, c clustermesh.Content, most int) (clustermesh.Content, []clustermesh.Problem, int) {
	return kinds.sift(o, c, most)
}

// sift walks the rows: first over who may write what, then over what can be used.
func (t *table) sift(o clustermesh.Origin, c clustermesh.Content, most int) (clustermesh.Content, []clustermesh.Problem, int) {
	s := &sifter{origin: o, most: most}
	t.refuse(&c, func(field string) { s.fault(s.record(), field, "strait has no rule for this field", "report a bug") })
	for _, k := range t.kinds {
		if h := k.about(); !h.by.include(o) && k.clear(&c) {
			s.checked(s.record(), h.name, errors.New("this kind of origin must not write it"))
		}
	}
	for _, k := range t.kinds {
		k.sift(s, &c)
	}
	if s.more > 0 {
		s.problems = append(s.problems, clustermesh.Problem{
			Code:   problem.RecordPartLeftOut,
			Object: s.record(), Message: fmt.Sprintf("%d more of its objects cannot be used: left out", s.more), Try: s.try(),
		})
	}
	return c, s.problems, s.found
}

// sifter collects the Problems of one content.
type sifter struct {
	origin   clustermesh.Origin
	problems []clustermesh.Problem
	more     int // Problems beyond the bound
	// found counts the faults. Above most, nothing more is looked at.
	found, most int
}

// record is how Problems name the record as a whole.
func (s *sifter) record() string { return "record " + s.origin.String() }

func (s *sifter) full() bool { return s.found > s.most }

func (s *sifter) try() string {
	return fmt.Sprintf("correct it in cluster %s; the rest is in force", s.origin.Cluster)
}

// checked reports whether err is nil. If not, it records a Problem.
func (s *sifter) checked(object, field string, err error) bool {
	if err == nil {
		return true
	}
	s.fault(object, field, err.Error(), s.try())
	return false
}

func (s *sifter) fault(object, field, message, try string) {
	s.found++
	if len(s.problems) == maxUnusable {
		s.more++
		return
	}
	s.problems = append(s.problems, clustermesh.Problem{Code: problem.RecordPartLeftOut, Object: object, Field: field, Message: message + ": left out", Try: try})
}

// of returns how Problems name a Service of the origin's cluster.
func (s *sifter) of(service clustermesh.ServiceName) string {
	name := service.String()
	if service.Check() != nil {
		name = clustermesh.Quoted(name)
	}
	return name + " of cluster " + string(s.origin.Cluster)
}

// node returns what can be used of what a node says about itself.
func (s *sifter) node(given *clustermesh.Node) *clustermesh.Node {
	if given == nil {
		return nil
	}
	n, object := *given, "node "+s.origin.String()
	if n.Name != s.origin.Node {
		s.checked(object, "name", fmt.Errorf("the record says %s", clustermesh.Quoted(string(n.Name))))
		return nil
	}
	found := s.found
	if !s.checked(object, "locality.region", clustermesh.CheckText(n.Locality.Region, clustermesh.MaxName)) {
		n.Locality.Region = ""
	}
	if !s.checked(object, "locality.zone", clustermesh.CheckText(n.Locality.Zone, clustermesh.MaxName)) {
		n.Locality.Zone = ""
	}
	if !s.checked(object, "drain", n.Drain.Check()) {
		n.Drain = nil
	}
	n.Addresses = keep(s, n.Addresses, func(i int) bool { return s.checked(object, at("addresses", i), clustermesh.CheckHost(n.Addresses[i])) })
	n.Prefixes = keep(s, n.Prefixes, func(i int) bool { return s.checked(object, at("prefixes", i), clustermesh.CheckPrefix(n.Prefixes[i])) })
	n.ClusterIPs = keep(s, n.ClusterIPs, func(i int) bool {
		if !slices.Contains(n.Prefixes, n.ClusterIPs[i]) {
			return s.checked(object, at("clusterIPs", i), fmt.Errorf("%s is none of its prefixes", n.ClusterIPs[i]))
		}
		return true
	})
	if n.Inside.IsValid() && !s.checked(object, "inside", clustermesh.CheckHost(n.Inside)) {
		n.Inside = netip.Addr{}
	}
	if s.found == found {
		return given
	}
	return &n
}

// endpoints returns the usable endpoints, without their unusable ports and fields.
func (s *sifter) endpoints(given []clustermesh.Endpoint) []clustermesh.Endpoint {
	var out []clustermesh.Endpoint
	changed := false
	for i := range given {
		if s.full() {
			return nil
		}
		found := s.found
		e, ok := s.endpoint(given[i])
		if !changed && s.found > found {
			changed, out = true, slices.Clone(given[:i])
		}
		if changed && ok {
			out = append(out, e)
		}
	}
	if !changed {
		return given
	}
	return out
}

func (s *sifter) endpoint(e clustermesh.Endpoint) (clustermesh.Endpoint, bool) {
	object := func() string { return fmt.Sprintf("endpoint %s of %s", e.Addr, s.of(e.Service)) }
	fine := func(field string, err error) bool { return err == nil || s.checked(object(), field, err) }
	if !fine("service", e.Service.Check()) || !fine("addr", clustermesh.CheckHost(e.Addr)) {
		return e, false
	}
	if s.origin.Node != "" && e.Node != "" && e.Node != s.origin.Node {
		return e, fine("node", fmt.Errorf("it is on node %s, which publishes it itself", clustermesh.Quoted(string(e.Node))))
	}
	if e.Node != "" && !fine("node", clustermesh.CheckName(string(e.Node))) {
		return e, false
	}
	if !fine("zone", clustermesh.CheckText(e.Zone, clustermesh.MaxName)) {
		e.Zone = ""
	}
	if !fine("hostname", clustermesh.CheckHostname(e.Hostname)) {
		e.Hostname = ""
	}
	if !fine("pod", clustermesh.CheckText(e.Pod, clustermesh.MaxName)) {
		e.Pod = ""
	}
	ports := e.Ports
	e.Ports = keep(s, ports, func(i int) bool {
		err := ports[i].Check()
		return err == nil || s.checked(object(), at("ports", i), err)
	})
	return e, true
}

func (s *sifter) drain(d *clustermesh.Drain) *clustermesh.Drain {
	if err := d.Check(); err != nil {
		s.checked(s.record(), "drain", err)
		return nil
	}
	return d
}

func checkSilence(o clustermesh.Origin, s *clustermesh.Silence) error {
	if err := s.Origin.Check(); err != nil {
		return err
	}
	if s.Origin.Node == "" || s.Origin == o {
		return fmt.Errorf("%s is not another node", s.Origin)
	}
	return nil
}

// withdrawn leaves out withdrawals that cannot be used. They must be in order, so that one is found
// quickly.
func (s *sifter) withdrawn(given []clustermesh.Withdrawal) []clustermesh.Withdrawal {
	var last clustermesh.Withdrawal
	return keep(s, given, func(i int) bool {
		w := given[i]
		err := clustermesh.CheckName(string(w.Node))
		if err == nil && w.Compare(last) <= 0 {
			err = errors.New("the list is not sorted, or names it twice")
		}
		if err == nil {
			last = w
			return true
		}
		return s.checked(s.record(), at("withdrawn", i), err)
	})
}

// names returns the names of a cluster's Nodes if all are valid, sorted and unique. An unlisted node
// counts as gone, so part of the list is worse than none.
func (s *sifter) names(nodes []clustermesh.NodeName) []clustermesh.NodeName {
	for i, n := range nodes {
		err := clustermesh.CheckName(string(n))
		if err == nil && i > 0 && n <= nodes[i-1] {
			err = fmt.Errorf("%s does not come after %s: names must be sorted and unique", clustermesh.Quoted(string(n)), clustermesh.Quoted(string(nodes[i-1])))
		}
		if err != nil {
			s.checked(s.record(), at("nodes", i), err)
			return nil
		}
	}
	return nodes
}

// keep returns the elements whose index passes, or the list itself if all of them do.
func keep[T any](s *sifter, all []T, pass func(i int) bool) []T {
	var out []T
	dropped := false
	for i := range all {
		if s.full() {
			return nil
		}
		ok := pass(i)
		if !ok && !dropped {
			dropped, out = true, slices.Clone(all[:i])
		}
		if ok && dropped {
			out = append(out, all[i])
		}
	}
	if !dropped {
		return all
	}
	return out
}
