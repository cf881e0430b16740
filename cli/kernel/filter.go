package kernel

import (
	"net/netip"
	"slices"
	"strings"

	"strait.io/strait/cli"
	"strait.io/strait/daemon/api"
	"strait.io/strait/internal/l4"
)

// mapFilter selects frontends: by address, with or without port and protocol, or by service.
type mapFilter struct {
	text string // as given; empty matches all
	// A zero value of the next three matches any.
	ip    netip.Addr
	port  uint16
	proto l4.Proto
	// service is NAMESPACE/NAME; servicePort is one of its ports, or empty for all.
	service, servicePort string
	frontends            []l4.Addr // the service's, once resolved
}

// parseMapFilter parses the optional argument that selects which frontends to show.
func parseMapFilter(args []string) (f mapFilter, err error) {
	if len(args) == 0 {
		return f, nil
	}
	f.text = args[0]
	host, proto, hasProto := strings.Cut(f.text, "/")
	bare := strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if at, err := netip.ParseAddrPort(host); err == nil {
		f.ip, f.port = at.Addr().Unmap(), at.Port()
	} else if ip, err := netip.ParseAddr(bare); err == nil {
		f.ip = ip.Unmap()
	} else if !hasProto {
		return f, cli.UsageError("%q is neither a service, such as default/serve, nor a frontend, such as 241.7.3.9, "+
			"241.7.3.9:80 or [fd00::9]:80/TCP", f.text)
	} else {
		f.service, f.servicePort, err = cli.ParseService(f.text)
		return f, err
	}
	if hasProto {
		if f.proto, err = l4.ParseProto(proto); err != nil || proto == "" {
			return f, cli.UsageError("frontend %q: want TCP or UDP after the slash", f.text)
		}
	}
	return f, nil
}

// resolve fills in the frontends of the service that the filter names, if it names one.
func (f mapFilter) resolve(p pinned) (mapFilter, error) {
	if f.service == "" {
		return f, nil
	}
	if p.unknown != nil {
		return f, cli.Exit(cli.ExitUnknown, &api.Failure{Reason: api.NoAnswer, Cause: p.unknown,
			Message: "the maps hold no service names, and straitd's names cannot be used: " + p.whyUnknown(),
			Try:     "filter by a frontend's address, such as 241.7.3.9 or 241.7.3.9:80"})
	}
	i := slices.IndexFunc(p.services, func(s api.Service) bool { return s.Name == f.service })
	if i < 0 {
		try := "list the services with strait services"
		if near := api.SimilarServices(p.services, f.service); len(near) > 0 {
			try = "did you mean " + strings.Join(near, " or ") + "?"
		}
		return f, cli.Exit(cli.ExitProblem, &api.Failure{Reason: api.NotFound, Try: try,
			Message: "no cluster exports a service " + f.service})
	}
	s, err := cli.OnlyPort(p.services[i], f.servicePort)
	if err != nil {
		return f, err
	}
	f.frontends = []l4.Addr{}
	for _, frontend := range s.Frontends {
		f.frontends = append(f.frontends, frontend.Addr)
	}
	return f, nil
}

func (f mapFilter) matches(a l4.Addr) bool {
	if f.service != "" {
		return slices.Contains(f.frontends, a)
	}
	return (!f.ip.IsValid() || f.ip == a.IP) && (f.port == 0 || f.port == a.Port) && (f.proto == 0 || f.proto == a.Proto)
}
