package daemon

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/mcs"
	"strait.io/strait/daemon/dns"
	"strait.io/strait/daemon/trustlevel"
	"strait.io/strait/datapath/sockdestroy"
)

// Validate returns all mistakes at once, each with the path of its field.
func (c Config) Validate() error {
	var m mistakes
	c.validate(&m)
	return m.err()
}

func (c Config) validate(m *mistakes) {
	if msgs := validation.IsDNS1123Label(c.Cluster); len(msgs) > 0 && (c.Cluster != "" || c.Source.Kubernetes == nil) {
		m.add("cluster", "%q: %s", c.Cluster, msgs[0])
	}
	if msgs := validation.IsDNS1123Subdomain(c.Node); len(msgs) > 0 {
		m.add("node", "%q: %s", c.Node, msgs[0])
	}
	c.validateSource(m)
	c.validatePaths(m)
	c.validateCIDRs(m)
	c.validateAddresses(m)
	c.validateMesh(m)
	c.Locality.validate(m)
	c.History.validate(m)
	c.validateReplication(m)
	c.validateAuthority(m)
	if g := c.BPF.unreadyGrace(); g < 0 {
		m.add("bpf.unreadyGrace", "%s is negative: want 0s, which closes sockets at once, or a time such as 10s", g)
	}
	if !c.BPF.destroySockets() && c.BPF.DestroyTCP == sockdestroy.TCPGone {
		m.add("bpf.destroyTCP", "%s needs bpf.destroySockets: with false, no sockets are closed; remove one of the two", c.BPF.DestroyTCP)
	}
	if err := c.BPF.socklb().Validate(); err != nil {
		for _, e := range flatten(err) { // each begins with its field
			m.errs = append(m.errs, fmt.Errorf("bpf.%w", e))
		}
	}
}

func (c Config) validateAuthority(m *mistakes) {
	a, k := c.Authority, c.Source.Kubernetes != nil
	if a.Mode == AuthorityOff {
		if a != (AuthorityConfig{Mode: AuthorityOff}) {
			m.add("authority.mode", "is off, so the other fields of authority mean nothing: remove one or the other")
		}
		return
	}
	switch {
	case a.later() && a.TrustLevel != "":
		m.add("authority.believeFile", "says the same as authority.believe: remove one of the two")
	case a.later() && a.PinsFile == "":
		m.add("authority.believeFile", "is only for machines with authority.pinsFile: set that, or remove this field")
	case a.Make != nil && (c.leaderDir() == "" || !a.later()):
		m.add("authority.make", "needs source.kubernetes.leaderDir and authority.believeFile: the leader makes what they come from; set both, or remove this field")
	case a.Make != nil && (a.Make.Secret == "" || a.Make.Pins == "" || a.Make.TrustLevel == ""):
		m.add("authority.make", "names a Secret and two ConfigMaps: set secret, pins and believe")
	}
	switch {
	case a.MembersDir != "" && a.PinsFile == "":
		m.add("authority.membersDir", "is only for machines with authority.pinsFile, which has this cluster's own pin: set that, or remove this field")
	case a.Publish != "" && c.leaderDir() == "":
		m.add("authority.publish", "needs source.kubernetes.leaderDir: the leader writes the ConfigMap with the root that is lent to it; set that, or remove this field")
	}
	switch {
	case a.TokenFile == "" && k && !a.leads():
		m.add("authority.tokenFile", "is required without authority.rootFile: the machine proves with it to one that has the root which node it is")
	case a.TokenFile != "" && (!k || a.leads()):
		m.add("authority.tokenFile", "is only for machines with an API server and authority.pinsFile, and without authority.rootFile: remove it")
	}
	switch {
	case a.TrustLevel == trustlevel.All && a.PinsFile == "":
		m.add("authority.believe", "is only for machines with authority.pinsFile: without pins, everybody who has the gossip key is believed anyway; remove it")
	case k && c.Source.Kubernetes.LeaderDir != "" && a.RootFile != "":
		m.add("authority.rootFile", "is not used with source.kubernetes.leaderDir, where the root is lent: remove one of the two")
	case k && c.Source.Kubernetes.LeaderDir != "" && a.on() && a.PinsFile == "":
		m.add("authority.pinsFile", "is required with source.kubernetes.leaderDir: by the pins, a node knows who can sign for it")
	}
}

func (c Config) validateSource(m *mistakes) {
	k := c.Source.Kubernetes
	switch {
	case k == nil && c.Source.Manifest == "":
		m.add("source", "is required: manifest, the directory that holds the cluster's YAML, or kubernetes: {}, its API server")
		return
	case k == nil:
		return
	case c.Source.Manifest != "":
		m.add("source", "has both manifest and kubernetes: the cluster's objects come from one place, remove the other")
	}
	if msgs := validation.IsDNS1123Label(k.Namespace); len(msgs) > 0 {
		m.add("source.kubernetes.namespace", "%q: %s", k.Namespace, msgs[0])
	}
	if k.DerivedPrefix != nil {
		if err := mcs.CheckPrefix(*k.DerivedPrefix); err != nil {
			m.add("source.kubernetes.derivedPrefix", "%q %v", *k.DerivedPrefix, err)
		}
	}
	for i, p := range k.BarredNamespaces {
		if err := (clustermesh.Barred{p}).Check(); err != nil {
			m.add(fmt.Sprintf("source.kubernetes.barredNamespaces[%d]", i), "%v", err)
		}
	}
	for i, other := range k.AcceptConfigFrom {
		field := fmt.Sprintf("source.kubernetes.acceptConfigFrom[%d]", i)
		if msgs := validation.IsDNS1123Label(string(other)); len(msgs) > 0 {
			m.add(field, "%q: %s", other, msgs[0])
		} else if slices.Contains(k.AcceptConfigFrom[:i], other) {
			m.add(field, "%s is listed twice: remove one of the two", other)
		}
	}
	if c.Gossip.Bind.Port() == 0 {
		m.add("gossip.bind", "%q needs a port, the same on all nodes of the cluster: they use it to find each other", c.Gossip.Bind)
	}
}

func (c Config) validatePaths(m *mistakes) {
	if c.ViewGroup < 0 {
		m.add("viewGroup", "%d is not the ID of a group", c.ViewGroup)
	}
	for _, x := range []struct{ field, path string }{
		{"stateDir", c.StateDir}, {"runDir", c.RunDir},
	} {
		if !filepath.IsAbs(x.path) {
			m.add(x.field, "%q is not an absolute path", x.path)
		}
	}
}

func (c Config) validateCIDRs(m *mistakes) {
	families := map[bool]bool{}
	for i, p := range c.ClusterSetCIDRs {
		field := fmt.Sprintf("clustersetCIDRs[%d]", i)
		switch {
		case !p.IsValid():
			m.add(field, "is empty: want a CIDR, as in 241.0.0.0/8 or fd00:5354::/64")
			continue
		case p != p.Masked():
			m.add(field, "%s has host bits set: did you mean %s?", p, p.Masked())
		case p.Addr().BitLen()-p.Bits() < 2:
			m.add(field, "%s is too small: the first and the last address of a range are never given out", p)
		case p.Addr().IsLoopback() || p.Addr().IsMulticast() || p.Addr().IsLinkLocalUnicast():
			m.add(field, "%s is loopback, multicast or link-local", p)
		}
		if families[p.Addr().Is4()] {
			m.add(field, "%s is the second range of its IP family: give at most one IPv4 and one IPv6 range", p)
		}
		families[p.Addr().Is4()] = true
	}
}

func (c Config) validateAddresses(m *mistakes) {
	for i, s := range c.Gossip.Seeds {
		if !strings.Contains(s, ":") {
			m.add(fmt.Sprintf("gossip.seeds[%d]", i), "%q: want HOST:PORT", s)
		}
	}
	if f := c.Gossip.SeedsFile; f != "" && !filepath.IsAbs(f) {
		m.add("gossip.seedsFile", "%q is not an absolute path", f)
	}
	if _, err := clustermesh.ParseRelayUse(c.Gossip.Relay); err != nil {
		m.add("gossip.relay", "%v", err)
	}
	for _, x := range []struct{ field, path string }{
		{"authority.rootFile", c.Authority.RootFile}, {"authority.pinsFile", c.Authority.PinsFile}, {"authority.membersDir", c.Authority.MembersDir},
		{"authority.tokenFile", c.Authority.TokenFile}, {"authority.believeFile", c.Authority.TrustLevelFile}, {"source.kubernetes.leaderDir", c.leaderDir()},
		{"mesh.peersFile", c.Mesh.PeersFile},
	} {
		if x.path != "" && !filepath.IsAbs(x.path) {
			m.add(x.field, "%q is not an absolute path", x.path)
		}
	}
	for i, p := range c.NodePrefixes {
		if !p.IsValid() || p != p.Masked() || p.Bits() == 0 {
			m.add(fmt.Sprintf("nodePrefixes[%d]", i), "%s is not a prefix of this node's pods, as in 10.1.2.0/24", p)
		}
	}
	if p := c.DNS.Probe; p != (AddrOrOff{}) && c.Source.Kubernetes == nil {
		m.add("dns.probe", "is only for clusters with an API server, whose leader asks the cluster's DNS: remove it")
	} else if p.Addr.IsValid() && p.Addr.Port() == 0 {
		m.add("dns.probe", "%s needs a port, as in 10.96.0.10:53", p.Addr.Addr())
	}
	for i, listen := range c.DNS.Listen {
		field := fmt.Sprintf("dns.listen[%d]", i)
		m.present(field, listen)
		a := listen.Addr()
		if p, is := within(clouds, a); is {
			m.add(field, "%s is in %s, which cloud providers use for their machines: choose another, such as 169.254.20.11:53", a, p)
		}
		if what := openTo(a); what != "" && len(c.DNS.Upstreams) > 0 {
			m.add(field, "%s is %s, so with dns.upstreams it would answer anyone's questions about any name: list the addresses that the node's own clients use, or remove dns.upstreams", listen, what)
		}
	}
	for i, a := range c.DNS.Upstreams {
		m.present(fmt.Sprintf("dns.upstreams[%d]", i), a)
	}
	c.validateFallThrough(m)
}

// shared is for addresses behind a carrier's NAT (RFC 6598), which networks of pods use too.
var shared = netip.MustParsePrefix("100.64.0.0/10")

// openTo returns what makes an address reachable from everywhere; empty if nothing does.
func openTo(a netip.Addr) string {
	a = a.Unmap()
	switch {
	case a.IsUnspecified():
		return "every address of this machine"
	case a.IsGlobalUnicast() && !a.IsPrivate() && !shared.Contains(a):
		return "a public address"
	}
	return ""
}

func (c Config) validateFallThrough(m *mistakes) {
	const field = "dns.fallThrough"
	zone := strings.TrimSuffix(c.DNS.FallThrough, ".")
	msgs := validation.IsDNS1123Subdomain(zone)
	switch {
	case c.DNS.FallThrough == "":
	case len(msgs) > 0:
		m.add(field, "%q: %s", c.DNS.FallThrough, msgs[0])
	case strings.HasSuffix("."+zone, "."+dns.DefaultZone) || strings.HasSuffix("."+dns.DefaultZone, "."+zone):
		m.add(field, "%q is not the cluster's own zone: want the one of its Services, as in cluster.local", zone)
	case len(c.DNS.Listen) == 0:
		m.add(field, "needs dns.listen: without it there is no DNS server; set dns.listen, or remove this field")
	}
}

// present adds an error if an element of a list is empty: an empty text decodes.
func (m *mistakes) present(field string, a netip.AddrPort) {
	if !a.IsValid() {
		m.add(field, "is empty: want an address and port, as in 10.0.0.1:7946 or [fd00::1]:7946")
	}
}

func (c Config) validateMesh(m *mistakes) {
	if d := c.Mesh.Device; len(d) > 15 || strings.ContainsAny(d, "/ ") {
		m.add("mesh.device", "%q is not an interface name: at most 15 characters, no slash, no space", d)
	}
	if mtu := c.Mesh.MTU; mtu != 0 && (mtu < 1280 || mtu > 65455) {
		m.add("mesh.mtu", "%d is not between 1280 (the minimum of IPv6) and 65455", mtu)
	}
	if t := c.Mesh.Table; t < 0 || t > 1<<31-1 || t >= 253 && t <= 255 {
		m.add("mesh.table", "%d is not a routing table of its own: 1 to 2147483647, but 253 to 255 are the system's", t)
	}
}

// leaderDir returns where this node is lent what it needs to lead; empty if it needs nothing more.
func (c Config) leaderDir() string {
	if c.Source.Kubernetes == nil {
		return ""
	}
	return c.Source.Kubernetes.LeaderDir
}

// cidrs returns the ranges of ClusterSetIPs; nil if derived Services allocate them.
func (c Config) cidrs() []netip.Prefix {
	if c.derived() {
		return nil
	}
	return c.ClusterSetCIDRs
}

func (c Config) derived() bool {
	return c.Source.Kubernetes != nil && c.Source.Kubernetes.ClusterSetIPs != mcs.IPsCIDR
}

// configFrom returns the clusters whose configuration is accepted. The cluster's own is always accepted.
func (c Config) configFrom(own clustermesh.ClusterName) []clustermesh.ClusterName {
	if c.Source.Kubernetes == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(c.Source.Kubernetes.AcceptConfigFrom), func(o clustermesh.ClusterName) bool { return o == own })
}

// barred returns the namespaces that take no part.
func (c Config) barred() clustermesh.Barred {
	if c.Source.Kubernetes == nil {
		return nil
	}
	return c.Source.Kubernetes.BarredNamespaces
}
