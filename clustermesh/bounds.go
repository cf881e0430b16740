package clustermesh

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Limits on what an origin can publish. The same limits apply to objects read from this cluster and to
// records received from others. Unknown words pass, so that newer builds can use them.
const (
	MaxName            = 253 // a DNS name
	maxLabel           = 63  // a DNS label
	maxQualified       = 317 // a qualified name: 253, "/", 63
	MaxWord            = 64
	maxAffinitySeconds = 86400 // Kubernetes' own limit
	maxClusters        = 256   // in one list
)

// neverPods lists addresses that no pod has, so no node can claim them for its pods.
var neverPods = []struct {
	prefix netip.Prefix
	what   string
}{
	{netip.MustParsePrefix("0.0.0.0/8"), "this network"},
	{netip.MustParsePrefix("127.0.0.0/8"), "loopback"},
	{netip.MustParsePrefix("169.254.0.0/16"), "link-local"},
	{netip.MustParsePrefix("224.0.0.0/4"), "multicast"},
	{netip.MustParsePrefix("255.255.255.255/32"), "broadcast"},
	{netip.MustParsePrefix("::/128"), "the unspecified address"},
	{netip.MustParsePrefix("::1/128"), "loopback"},
	{netip.MustParsePrefix("fe80::/10"), "link-local"},
	{netip.MustParsePrefix("ff00::/8"), "multicast"},
}

// CheckPrefix returns an error unless a node's pods can have the addresses of a prefix.
func CheckPrefix(p netip.Prefix) error {
	switch {
	case !p.IsValid() || p.Addr().Is4In6():
		return fmt.Errorf("%s is not an IPv4 or IPv6 prefix", p)
	case p.Bits() == 0: // it would claim every address of the clusterset
		return fmt.Errorf("%s covers every address", p)
	}
	for _, n := range neverPods {
		if p.Overlaps(n.prefix) {
			return fmt.Errorf("%s overlaps %s (%s), which pods cannot use", p, n.prefix, n.what)
		}
	}
	return nil
}

// CheckHost returns an error unless other machines can send packets to an address.
func CheckHost(a netip.Addr) error {
	switch {
	case !a.IsValid():
		return errors.New("an address is missing")
	case a.Is4In6(), a.Zone() != "":
		return fmt.Errorf("%s is not a plain IPv4 or IPv6 address", a)
	case a.IsUnspecified(), a.IsLoopback(), a.IsMulticast(), a.IsLinkLocalUnicast():
		return fmt.Errorf("%s cannot be reached from other machines", a)
	}
	return nil
}

// CheckName accepts any DNS name, and more: a name only has to survive printing, splitting at "/"
// and logs.
func CheckName(s string) error {
	if s == "" || len(s) > MaxName || !printable(s) || strings.Contains(s, "/") {
		return fmt.Errorf("%s is not a usable name", Quoted(s))
	}
	return nil
}

// Check returns an error unless both names can be used.
func (o Origin) Check() error {
	if err := CheckName(string(o.Cluster)); err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	if o.Node == "" {
		return nil
	}
	if err := CheckName(string(o.Node)); err != nil {
		return fmt.Errorf("node: %w", err)
	}
	return nil
}

// Check returns an error unless both names can be used.
func (s ServiceName) Check() error {
	if err := CheckName(s.Namespace); err != nil {
		return fmt.Errorf("namespace: %w", err)
	}
	if err := CheckName(s.Name); err != nil {
		return fmt.Errorf("name: %w", err)
	}
	return nil
}

// CheckFingerprint returns an error unless a text is the fingerprint of a key: "SHA256:", and 43 digits
// of base64 without padding.
func CheckFingerprint(s string) error {
	digest, ok := strings.CutPrefix(s, "SHA256:")
	if sum, err := base64.RawStdEncoding.DecodeString(digest); !ok || err != nil || len(sum) != sha256.Size {
		return fmt.Errorf("%s is not the fingerprint of a key, such as SHA256:Xk2v…", Quoted(s))
	}
	return nil
}

// CheckHostname accepts a DNS label: a hostname becomes part of a DNS name, and of an
// EndpointSlice.
func CheckHostname(s string) error {
	bad := func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' }
	if len(s) > maxLabel || strings.IndexFunc(s, bad) >= 0 || strings.HasPrefix(s, "-") || strings.HasSuffix(s, "-") {
		return fmt.Errorf("%s cannot be part of a DNS name", Quoted(s))
	}
	return nil
}

// CheckText accepts text for people, such as a zone. It may be empty.
func CheckText(s string, limit int) error {
	if len(s) > limit || !printable(s) {
		return fmt.Errorf("%s is too long or cannot be printed", Quoted(s))
	}
	return nil
}

// Check returns an error unless a port can be used.
func (p EndpointPort) Check() error {
	switch {
	case p.Port == 0:
		return fmt.Errorf("port %s has no number", Quoted(p.Name))
	case p.Name != "":
		return CheckName(p.Name)
	}
	return nil
}

// Check returns an error unless an export can be used. Its routing is checked apart.
func (e Export) Check() error {
	err := errors.Join(
		e.Service.Check(), checkPorts(e.Ports), checkAffinity(e.AffinitySeconds),
		checkWord("type", string(e.Type)), checkWord("internalTrafficPolicy", e.InternalTrafficPolicy),
		checkWord("trafficDistribution", e.TrafficDistribution),
		checkExported("labels", e.Labels), checkExported("annotations", e.Annotations),
		checkClusters("to", e.To), CheckText(e.Policy, MaxName),
	)
	if len(e.IPs) > 2 {
		return errors.Join(err, fmt.Errorf("%d addresses are more than one per family", len(e.IPs)))
	}
	for _, ip := range e.IPs {
		err = errors.Join(err, CheckHost(ip))
	}
	for i, f := range e.Families {
		if f != IPv4 && f != IPv6 || slices.Contains(e.Families[:i], f) {
			return errors.Join(err, fmt.Errorf("family %s is repeated or unknown", Quoted(string(f))))
		}
	}
	return err
}

// Check returns an error unless a global service can be used. Its routing is checked apart.
func (g Global) Check() error {
	err := errors.Join(
		g.Service.Check(), checkPorts(g.Ports), checkAffinity(g.AffinitySeconds),
		checkWord("affinity", string(g.Affinity)), checkWord("internalTrafficPolicy", g.InternalTrafficPolicy),
		checkWord("trafficDistribution", g.TrafficDistribution),
		checkClusters("to", g.To), checkClusters("from", g.From), CheckText(g.Policy, MaxName),
	)
	if len(g.IPs) > 2 {
		return errors.Join(err, fmt.Errorf("%d addresses are more than one per family", len(g.IPs)))
	}
	for _, ip := range g.IPs {
		err = errors.Join(err, CheckHost(ip))
	}
	return err
}

// checkClusters checks a list of clusters. A bad one makes the whole list unusable, and what it limits:
// without the list, that would be for all clusters.
func checkClusters(field string, list []ClusterName) error {
	if len(list) > maxClusters {
		return fmt.Errorf("%s: %d clusters exceed the limit of %d", field, len(list), maxClusters)
	}
	for _, c := range list {
		if err := CheckName(string(c)); err != nil {
			return fmt.Errorf("%s: %w", field, err)
		}
	}
	return nil
}

func checkPorts(ports []ServicePort) error {
	for _, p := range ports {
		if p.Port == 0 {
			return fmt.Errorf("port %s has no number", Quoted(p.Name))
		}
		if p.Name != "" {
			if err := CheckName(p.Name); err != nil {
				return fmt.Errorf("port: %w", err)
			}
		}
		if err := CheckText(p.AppProtocol, maxQualified); err != nil {
			return fmt.Errorf("port %s: appProtocol %w", Quoted(p.Name), err)
		}
	}
	return nil
}

func checkAffinity(seconds uint32) error {
	if seconds > maxAffinitySeconds {
		return fmt.Errorf("session affinity of %d seconds is more than %d", seconds, maxAffinitySeconds)
	}
	return nil
}

func checkWord(field, s string) error {
	if err := CheckText(s, MaxWord); err != nil {
		return fmt.Errorf("%s %w", field, err)
	}
	return nil
}

// checkExported checks labels or annotations. Their keys are names, their values free text.
func checkExported(field string, m map[string]string) error {
	for k := range m {
		if k == "" || len(k) > maxQualified || !printable(k) {
			return fmt.Errorf("%s: key %s is empty, too long or cannot be printed", field, Quoted(k))
		}
	}
	if err := CheckExported(m); err != nil {
		return fmt.Errorf("%s: %w", field, err)
	}
	return nil
}

// printable reports whether s is visible ASCII without spaces.
func printable(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f }) < 0
}

// Quoted quotes and shortens s for a message, whatever bytes it holds.
func Quoted(s string) string {
	if len(s) > MaxWord {
		return fmt.Sprintf("%q… (%d bytes)", s[:MaxWord], len(s))
	}
	return fmt.Sprintf("%q", s)
}
