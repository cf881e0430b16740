package replica

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"strait.io/strait/clustermesh"
)

// Bounds of what a Service can say. Words that this build does not know pass, so that a newer one may say them.
const (
	maxAffinitySeconds = 86400 // Kubernetes' own limit
	maxWord            = 64
	maxQualified       = 317 // a qualified name: 253, "/", 63
)

func validExport(e clustermesh.Export) error {
	err := errors.Join(
		validService(e.Service), validPorts(e.Ports), validAffinity(e.AffinitySeconds),
		validWord("type", string(e.Type)), validWord("internalTrafficPolicy", e.InternalTrafficPolicy),
		validWord("trafficDistribution", e.TrafficDistribution),
		validExported("labels", e.Labels), validExported("annotations", e.Annotations),
	)
	for i, f := range e.Families {
		if f != clustermesh.IPv4 && f != clustermesh.IPv6 || slices.Contains(e.Families[:i], f) {
			return errors.Join(err, fmt.Errorf("family %q is given twice or is none", f))
		}
	}
	return err
}

func validGlobal(g clustermesh.Global) error {
	err := errors.Join(
		validService(g.Service), validPorts(g.Ports), validAffinity(g.AffinitySeconds),
		validWord("affinity", string(g.Affinity)), validWord("internalTrafficPolicy", g.InternalTrafficPolicy),
		validWord("trafficDistribution", g.TrafficDistribution),
	)
	if len(g.IPs) > 2 {
		return errors.Join(err, fmt.Errorf("%d addresses are more than one of each family", len(g.IPs)))
	}
	for _, ip := range g.IPs {
		err = errors.Join(err, validAddr(ip))
	}
	return err
}

func validPorts(ports []clustermesh.ServicePort) error {
	for _, p := range ports {
		switch {
		case p.Port == 0:
			return fmt.Errorf("port %q has no number", p.Name)
		case p.Name != "" && !validName(p.Name):
			return fmt.Errorf("port %q has no usable name", p.Name)
		case len(p.AppProtocol) > maxQualified || !printable(p.AppProtocol):
			return fmt.Errorf("port %q: appProtocol is too long or cannot be printed", p.Name)
		}
	}
	return nil
}

func validAffinity(seconds uint32) error {
	if seconds > maxAffinitySeconds {
		return fmt.Errorf("session affinity of %d seconds is more than %d", seconds, maxAffinitySeconds)
	}
	return nil
}

func validWord(field, s string) error {
	if len(s) > maxWord || !printable(s) {
		return fmt.Errorf("%s is too long or cannot be printed", field)
	}
	return nil
}

// validExported checks labels or annotations. Their values are people's text; their keys are names.
func validExported(field string, m map[string]string) error {
	for k := range m {
		if k == "" || len(k) > maxQualified || !printable(k) {
			return fmt.Errorf("%s: key %q is empty, too long or cannot be printed", field, k)
		}
	}
	if err := clustermesh.CheckExported(m); err != nil {
		return fmt.Errorf("%s: %w", field, err)
	}
	return nil
}

// printable reports visible ASCII without spaces.
func printable(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f }) < 0
}
