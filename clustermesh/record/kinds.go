// Package record is the table of what records contain: a row for each kind of content, which is a
// field of clustermesh.Content. A row says which origins may write the field, by what its elements
// are known, what of it can be used, what an origin may claim, how small it can be, and what repeats
// in it. What is done with every field walks the rows, so a new kind of content is a field and a row.
// A field without a row is refused.
//
// Inputs are the contents of records; outputs are the part that counts, and Problems about the rest.
// Pure. It must not know how records travel (packages replica and gossip), nor pins and statements:
// package authority, which has these, answers the questions of Judge. It is apart from the vocabulary
// (package clustermesh), which needs none of it, so that authority and replica can walk the rows.
package record

import (
	"errors"

	"strait.io/strait/clustermesh"
)

// Bounds of lists, besides those that their makers know.
const (
	maxGossipKeys = 2       // of a node
	maxRevoked    = 1 << 10 // keys of a cluster
	maxWithdrawn  = 1 << 14 // withdrawals of a cluster: two for each of many nodes
	maxResults    = 1 << 10 // policies
)

// kinds is what a record can contain. A field of clustermesh.Content that has no row here is refused.
// The rows are in the order in which the fields are checked.
var kinds = newTable(
	&single[*clustermesh.Node]{
		heading: heading{by: nodes},
		of:      func(c *clustermesh.Content) **clustermesh.Node { return &c.Node },
		usable:  (*sifter).node,
		claim:   place,
		same:    (*clustermesh.Node).Equal,
	},
	&list[clustermesh.Endpoint]{
		heading: heading{by: nodes | leaders, quota: QuotaEndpoints},
		of:      func(c *clustermesh.Content) *[]clustermesh.Endpoint { return &c.Endpoints },
		local:   func(l *clustermesh.Local) *[]clustermesh.Endpoint { return &l.Endpoints },
		key:     func(e *clustermesh.Endpoint) Key { return Key{Service: e.Service, Addr: e.Addr} },
		usable:  (*sifter).endpoints,
		intern:  shareEndpoint,
		least:   15, // the two names of a Service, and an address
		claim:   endpoints,
		same:    equal[clustermesh.Endpoint],
	},
	&list[clustermesh.Export]{
		heading: heading{by: leaders, quota: QuotaShared},
		of:      func(c *clustermesh.Content) *[]clustermesh.Export { return &c.Exports },
		local:   func(l *clustermesh.Local) *[]clustermesh.Export { return &l.Exports },
		key:     func(e *clustermesh.Export) Key { return Key{Service: e.Service} },
		what:    "ServiceExport",
		check:   checked[clustermesh.Export],
		routing: func(e *clustermesh.Export) **clustermesh.Routing { return &e.Routing },
		intern:  shareExport,
		least:   12,
		claim:   services[clustermesh.Export],
		stay:    oldest,
		same:    equal[clustermesh.Export],
	},
	&list[clustermesh.Export]{
		heading: heading{by: leaders, quota: QuotaShared},
		of:      func(c *clustermesh.Content) *[]clustermesh.Export { return &c.Mirrors },
		local:   func(l *clustermesh.Local) *[]clustermesh.Export { return &l.Mirrors },
		key:     func(e *clustermesh.Export) Key { return Key{Service: e.Service, Name: e.Policy} },
		what:    "mirrored Service",
		check:   checked[clustermesh.Export],
		intern:  shareExport,
		least:   12,
		claim:   mirrored,
		stay:    oldest,
		same:    equal[clustermesh.Export],
	},
	&list[clustermesh.Global]{
		heading: heading{by: leaders, quota: QuotaShared},
		of:      func(c *clustermesh.Content) *[]clustermesh.Global { return &c.Globals },
		local:   func(l *clustermesh.Local) *[]clustermesh.Global { return &l.Globals },
		key:     func(g *clustermesh.Global) Key { return Key{Service: g.Service} },
		what:    "global Service",
		check:   checked[clustermesh.Global],
		routing: func(g *clustermesh.Global) **clustermesh.Routing { return &g.Routing },
		intern:  shareGlobal,
		least:   9,
		claim:   services[clustermesh.Global],
		same:    equal[clustermesh.Global],
	},
	&single[*clustermesh.Drain]{
		heading: heading{by: leaders},
		of:      func(c *clustermesh.Content) **clustermesh.Drain { return &c.Drain },
		usable:  (*sifter).drain,
		claim:   unrestrictedValue[*clustermesh.Drain],
		same:    (*clustermesh.Drain).Equal,
	},
	&list[clustermesh.NodeDrain]{
		heading: heading{by: leaders},
		of:      func(c *clustermesh.Content) *[]clustermesh.NodeDrain { return &c.Drains },
		key:     func(d *clustermesh.NodeDrain) Key { return Key{Origin: clustermesh.Origin{Node: d.Node}} },
		most:    clustermesh.MaxDrains,
		check: func(_ clustermesh.Origin, d *clustermesh.NodeDrain) error {
			return errors.Join(clustermesh.CheckName(string(d.Node)), d.Drain.Check())
		},
		least: 3,
		claim: unrestricted[clustermesh.NodeDrain],
		same:  identical[clustermesh.NodeDrain],
	},
	&list[clustermesh.Allocation]{
		heading: heading{by: leaders},
		of:      func(c *clustermesh.Content) *[]clustermesh.Allocation { return &c.Allocations },
		local:   func(l *clustermesh.Local) *[]clustermesh.Allocation { return &l.Allocations },
		key:     func(a *clustermesh.Allocation) Key { return Key{Service: a.Service} },
		what:    "ServiceImport", part: "ip",
		check: func(_ clustermesh.Origin, a *clustermesh.Allocation) error {
			return errors.Join(a.Service.Check(), clustermesh.CheckHost(a.IP))
		},
		intern: func(_ *pool, a *clustermesh.Allocation) { shareName(&a.Service) },
		least:  15,
		claim:  unrestricted[clustermesh.Allocation],
		same:   identical[clustermesh.Allocation],
	},
	&list[clustermesh.Silence]{
		heading: heading{by: nodes},
		of:      func(c *clustermesh.Content) *[]clustermesh.Silence { return &c.Silent },
		key:     func(s *clustermesh.Silence) Key { return Key{Origin: s.Origin} },
		check:   checkSilence,
		least:   10,
		claim:   unrestricted[clustermesh.Silence],
		same:    identical[clustermesh.Silence],
	},
	&list[clustermesh.Late]{
		heading: heading{by: leaders},
		of:      func(c *clustermesh.Content) *[]clustermesh.Late { return &c.Late },
		key: func(l *clustermesh.Late) Key {
			return Key{Service: l.Service, Origin: clustermesh.Origin{Cluster: l.Cluster}}
		},
		most: clustermesh.MaxLate,
		check: func(_ clustermesh.Origin, l *clustermesh.Late) error {
			return errors.Join(clustermesh.CheckName(string(l.Cluster)), l.Service.Check())
		},
		least: 12,
		claim: unrestricted[clustermesh.Late],
		same:  identical[clustermesh.Late],
	},
	&list[string]{
		heading: heading{by: nodes},
		of:      func(c *clustermesh.Content) *[]string { return &c.GossipKeys },
		key:     func(s *string) Key { return Key{Name: *s} },
		most:    maxGossipKeys,
		check: func(_ clustermesh.Origin, s *string) error {
			return clustermesh.CheckText(*s, clustermesh.MaxWord)
		},
		claim: unrestricted[string],
		same:  identical[string],
	},
	&list[string]{
		heading: heading{by: leaders},
		of:      func(c *clustermesh.Content) *[]string { return &c.Revoked },
		key:     func(s *string) Key { return Key{Name: *s} },
		most:    maxRevoked,
		check:   func(_ clustermesh.Origin, s *string) error { return clustermesh.CheckFingerprint(*s) },
		claim:   unrestricted[string],
		same:    identical[string],
	},
	&list[clustermesh.Withdrawal]{
		heading: heading{by: leaders},
		of:      func(c *clustermesh.Content) *[]clustermesh.Withdrawal { return &c.Withdrawn },
		key:     func(w *clustermesh.Withdrawal) Key { return Key{Origin: clustermesh.Origin{Node: w.Node}} },
		most:    maxWithdrawn,
		usable:  (*sifter).withdrawn,
		least:   8,
		claim:   unrestricted[clustermesh.Withdrawal],
		same:    identical[clustermesh.Withdrawal],
	},
	&list[clustermesh.PolicyResult]{
		heading: heading{by: leaders},
		of:      func(c *clustermesh.Content) *[]clustermesh.PolicyResult { return &c.Results },
		key:     func(r *clustermesh.PolicyResult) Key { return Key{Name: r.Policy} },
		most:    maxResults,
		check:   checked[clustermesh.PolicyResult],
		least:   3,
		claim:   unrestricted[clustermesh.PolicyResult],
		same:    equal[clustermesh.PolicyResult],
	},
	&list[clustermesh.ConfigObject]{
		heading: heading{by: leaders},
		of:      func(c *clustermesh.Content) *[]clustermesh.ConfigObject { return &c.Config },
		local:   func(l *clustermesh.Local) *[]clustermesh.ConfigObject { return &l.Config },
		key:     func(o *clustermesh.ConfigObject) Key { return Key{Service: o.Name, Name: o.Kind} },
		most:    clustermesh.MaxConfigObjects,
		check:   checked[clustermesh.ConfigObject],
		least:   16,
		claim:   configuration,
		same:    equal[clustermesh.ConfigObject],
	},
	&list[clustermesh.NodeName]{
		heading: heading{by: leaders, quota: QuotaNodes},
		of:      func(c *clustermesh.Content) *[]clustermesh.NodeName { return &c.Nodes },
		key:     func(n *clustermesh.NodeName) Key { return Key{Origin: clustermesh.Origin{Node: *n}} },
		usable:  (*sifter).names,
		intern:  func(_ *pool, n *clustermesh.NodeName) { intern(n) },
		claim:   unrestricted[clustermesh.NodeName],
		same:    identical[clustermesh.NodeName],
	},
	&single[int64]{
		heading: heading{by: leaders},
		of:      func(c *clustermesh.Content) *int64 { return &c.AsOf },
		usable:  func(_ *sifter, at int64) int64 { return at },
		claim:   unrestrictedValue[int64],
		same:    func(a, b int64) bool { return a == b },
	},
)
