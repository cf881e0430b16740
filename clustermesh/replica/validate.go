package replica

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"strait.io/strait/clustermesh"
)

// maxStamp leaves room above every stamp, so that a writer can always go beyond what it finds.
const maxStamp = 1 << 63

// validate checks a record for what everyone may rely on: names that can be printed and split,
// addresses that are addresses, and content that its kind of writer may write.
func validate(rec clustermesh.Record) error {
	if err := validOrigin(rec.Origin); err != nil {
		return err
	}
	if rec.Stamp.Epoch == 0 || rec.Stamp.Epoch >= maxStamp || rec.Stamp.Version >= maxStamp {
		return fmt.Errorf("record of %s: stamp %s is out of range", rec.Origin, rec.Stamp)
	}
	if err := validContent(rec.Origin, rec.Content); err != nil {
		return fmt.Errorf("record of %s: %w", rec.Origin, err)
	}
	return nil
}

func validContent(o clustermesh.Origin, c clustermesh.Content) error {
	var errs []error
	check := func(field string, i int, err error) {
		if err != nil && len(errs) < 8 {
			errs = append(errs, fmt.Errorf("%s[%d]: %w", field, i, err))
		}
	}
	if o.Node == "" && (c.Node != nil || len(c.Silent) > 0) {
		errs = append(errs, errors.New("a cluster's own record has no node and no silent"))
	}
	if o.Node != "" && len(c.Exports)+len(c.Allocations)+len(c.Globals)+len(c.Nodes) > 0 {
		errs = append(errs, errors.New("a node's record has no exports, globals, allocations or nodes: its leader writes them"))
	}
	if c.Node != nil {
		check("node", 0, validNode(o, *c.Node))
	}
	for i, e := range c.Endpoints {
		check("endpoints", i, validEndpoint(o, e))
	}
	for i, e := range c.Exports {
		check("exports", i, validExport(e))
	}
	for i, g := range c.Globals {
		check("globals", i, validGlobal(g))
	}
	for i, a := range c.Allocations {
		check("allocations", i, errors.Join(validService(a.Service), validAddr(a.IP)))
	}
	for i, s := range c.Silent {
		err := validOrigin(s.Origin)
		if err == nil && (s.Origin.Node == "" || s.Origin == o) {
			err = fmt.Errorf("%s is not another node", s.Origin)
		}
		check("silent", i, err)
	}
	for i, n := range c.Nodes {
		switch {
		case !validName(string(n)):
			check("nodes", i, fmt.Errorf("%q is no usable name", n))
		case i > 0 && n <= c.Nodes[i-1]:
			check("nodes", i, fmt.Errorf("%q does not come after %q: they are sorted, each once", n, c.Nodes[i-1]))
		}
	}
	return errors.Join(errs...)
}

func validNode(o clustermesh.Origin, n clustermesh.Node) error {
	if n.Name != o.Node {
		return fmt.Errorf("name %q is not that of the record", n.Name)
	}
	for _, a := range n.Addresses {
		if err := validAddr(a); err != nil {
			return err
		}
	}
	for _, p := range n.Prefixes {
		if !p.IsValid() || p.Addr().Is4In6() {
			return fmt.Errorf("prefix %s is no prefix", p)
		}
	}
	if n.Inside.IsValid() {
		return validAddr(n.Inside)
	}
	return nil
}

func validEndpoint(o clustermesh.Origin, e clustermesh.Endpoint) error {
	if o.Node != "" && e.Node != "" && e.Node != o.Node {
		return fmt.Errorf("is of node %q: that node writes it", e.Node)
	}
	for _, p := range e.Ports {
		if p.Port == 0 {
			return fmt.Errorf("port %q has no number", p.Name)
		}
	}
	return errors.Join(validService(e.Service), validAddr(e.Addr))
}

func validService(s clustermesh.ServiceName) error {
	if !validName(s.Namespace) || !validName(s.Name) {
		return fmt.Errorf("service %q/%q has no usable name", s.Namespace, s.Name)
	}
	return nil
}

func validOrigin(o clustermesh.Origin) error {
	if !validName(string(o.Cluster)) || o.Node != "" && !validName(string(o.Node)) {
		return fmt.Errorf("origin %q/%q has no usable name", o.Cluster, o.Node)
	}
	return nil
}

// validName accepts any DNS name, and more: it only has to survive printing, splitting at "/" and logs.
func validName(s string) bool {
	return s != "" && len(s) <= 253 && printable(s) && !strings.Contains(s, "/")
}

func validAddr(a netip.Addr) error {
	switch {
	case !a.IsValid():
		return errors.New("an address is missing")
	case a.Is4In6(), a.Zone() != "", a.IsUnspecified(), a.IsMulticast():
		return fmt.Errorf("address %s cannot be a destination here", a)
	}
	return nil
}
