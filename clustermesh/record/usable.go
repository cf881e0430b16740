package record

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"strait.io/strait/clustermesh"
)

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
	if !s.checked(object, "version", clustermesh.CheckText(n.Version, clustermesh.MaxWord)) {
		n.Version = ""
	}
	if _, err := clustermesh.ParseRelayUse(string(n.Relay)); !s.checked(object, "relay", err) {
		n.Relay = clustermesh.RelayAuto
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
