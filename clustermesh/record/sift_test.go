package record_test

import (
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/record"
	"strait.io/strait/internal/key"
	"strait.io/strait/internal/l4"
)

var (
	ofNode    = clustermesh.Origin{Cluster: "us-east", Node: "n1"}
	ofCluster = clustermesh.Origin{Cluster: "us-east"}
	theServe  = clustermesh.ServiceName{Namespace: "default", Name: "serve"}
)

// orders are objects of a configuration.
func orders(names ...string) (out []clustermesh.ConfigObject) {
	for _, n := range names {
		out = append(out, clustermesh.ConfigObject{
			Kind: "MultiClusterService.networking.gke.io", Name: clustermesh.ServiceName{Namespace: "shop", Name: n},
			Annotations: map[string]string{"networking.gke.io/app-protocols": `{"web": "HTTP2"}`}, Spec: `{"template":{}}`,
		})
	}
	return out
}

// saidByNode has two of each list, so that one can be bad and the other stay.
func saidByNode() clustermesh.Content {
	pod := func(last byte) clustermesh.Endpoint {
		return clustermesh.Endpoint{
			Service: theServe, Addr: netip.AddrFrom4([4]byte{10, 1, 0, last}), Node: "n1", Zone: "z", Hostname: "h", Pod: "p", Ready: true,
			Ports: []clustermesh.EndpointPort{{Name: "http", Proto: l4.TCP, Port: 8080}, {Name: "dns", Proto: l4.UDP, Port: 53}},
		}
	}
	return clustermesh.Content{
		Node: &clustermesh.Node{
			Name: "n1", Locality: clustermesh.Locality{Region: "r", Zone: "z"},
			Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")},
			Prefixes:  []netip.Prefix{netip.MustParsePrefix("10.1.0.0/24"), netip.MustParsePrefix("fd00::/64")},
			Inside:    netip.MustParseAddr("10.1.0.1"), PublicKey: key.Public{1}, WireGuardPort: 51820, GossipPort: 7946,
		},
		Endpoints: []clustermesh.Endpoint{pod(5), pod(6)},
		Silent:    []clustermesh.Silence{{Origin: clustermesh.Origin{Cluster: "us-east", Node: "n2"}, Epoch: 5}, {Origin: clustermesh.Origin{Cluster: "eu", Node: "n1"}, Epoch: 6}},
	}
}

func saidByLeader() clustermesh.Content {
	ports := func() []clustermesh.ServicePort {
		return []clustermesh.ServicePort{{Name: "http", Proto: l4.TCP, Port: 80, AppProtocol: "http"}}
	}
	other := clustermesh.ServiceName{Namespace: "default", Name: "zebra"}
	return clustermesh.Content{
		Exports: []clustermesh.Export{
			{Service: theServe, Type: clustermesh.ClusterSetIP, AffinitySeconds: 2, Ports: ports(), Families: []clustermesh.Family{clustermesh.IPv6, clustermesh.IPv4},
				InternalTrafficPolicy: "Cluster", TrafficDistribution: "PreferMoon", Labels: map[string]string{"a/b": "c"}, Annotations: map[string]string{"note": "any text, ä"}},
			{Service: other, Type: clustermesh.Headless},
		},
		Globals: []clustermesh.Global{
			{Service: theServe, Ports: ports(), IPs: []netip.Addr{netip.MustParseAddr("10.96.0.1"), netip.MustParseAddr("fd00:96::1")}, Affinity: "moon"},
			{Service: other, Ports: ports()},
		},
		Results: []clustermesh.PolicyResult{
			{Policy: "stars", Mirrored: 3, Skipped: []clustermesh.SkippedSource{{Source: "c2/default/serve", Reason: "TargetExists", Message: "Service default/serve is no mirror, ä"}}},
			{Policy: "shop/cart"},
		},
		Config:      orders("cart", "web"),
		Allocations: []clustermesh.Allocation{{Service: theServe, IP: netip.MustParseAddr("241.0.0.1")}, {Service: other, IP: netip.MustParseAddr("241.0.0.2")}},
		Nodes:       []clustermesh.NodeName{"n1", "n2"},
		Withdrawn:   []clustermesh.Withdrawal{{Node: "n1", Below: 7, From: 1}, {Node: "n1", Below: 9, From: 2}, {Node: "n2", Below: 3}},
	}
}

func TestUsableWholes(t *testing.T) {
	for o, given := range map[clustermesh.Origin]clustermesh.Content{ofNode: saidByNode(), ofCluster: saidByLeader(), {Cluster: "c", Node: "n"}: {}} {
		if got, problems := record.Usable(o, given); len(problems) > 0 || !reflect.DeepEqual(got, given) {
			t.Errorf("%s: %+v, %v", o, got, problems)
		}
	}
}

// unusable is one bad object: how it comes to be, what its Problem begins with, and what the
// content is without it.
type unusable struct {
	spoil  func(*clustermesh.Content)
	says   string
	remove func(*clustermesh.Content)
}

func checkUnusable(t *testing.T, o clustermesh.Origin, said func() clustermesh.Content, cases map[string]unusable) {
	t.Helper()
	for name, c := range cases {
		given, want, before := said(), said(), said()
		c.spoil(&given)
		c.spoil(&before)
		c.remove(&want)
		got, problems := record.Usable(o, given)
		if len(problems) != 1 || !strings.HasPrefix(problems[0].String(), c.says) || problems[0].Try == "" || !strings.Contains(problems[0].Message, "left out") {
			t.Errorf("%s: Problems %v, want %q", name, problems, c.says)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: what is left is %+v, want %+v", name, got, want)
		}
		if !reflect.DeepEqual(given, before) {
			t.Errorf("%s: what was given has changed", name)
		}
		if again, problems := record.Usable(o, got); len(problems) > 0 || !reflect.DeepEqual(again, got) {
			t.Errorf("%s: what was left cannot all be used: %v", name, problems)
		}
	}
}

func TestUsableOfNodes(t *testing.T) {
	cases := map[string]unusable{}
	for text, why := range map[string]string{
		"0.0.0.0/0": "0.0.0.0/0 covers every address", "::/0": "::/0 covers every address",
		"127.0.0.0/8": "127.0.0.0/8 overlaps 127.0.0.0/8 (loopback)", "126.0.0.0/7": "126.0.0.0/7 overlaps 127.0.0.0/8 (loopback)",
		"127.0.0.1/32": "127.0.0.1/32 overlaps", "169.254.7.0/24": "169.254.7.0/24 overlaps 169.254.0.0/16 (link-local)",
		"224.0.0.0/4": "224.0.0.0/4 overlaps 224.0.0.0/4 (multicast)", "0.0.0.0/8": "0.0.0.0/8 overlaps 0.0.0.0/8 (this network)",
		"::1/128": "::1/128 overlaps ::1/128 (loopback)", "fe80::/64": "fe80::/64 overlaps fe80::/10 (link-local)",
		"ff02::/16": "ff02::/16 overlaps ff00::/8 (multicast)", "::/128": "::/128 overlaps ::/128 (the unspecified address)",
		"::ffff:10.0.0.0/104": "::ffff:10.0.0.0/104 is not an IPv4 or IPv6 prefix",
	} {
		cases["prefix "+text] = unusable{
			func(c *clustermesh.Content) { c.Node.Prefixes[0] = netip.MustParsePrefix(text) }, "node us-east/n1: prefixes[0]: " + why,
			func(c *clustermesh.Content) { c.Node.Prefixes = c.Node.Prefixes[1:] },
		}
	}
	for _, text := range []string{"127.0.0.1", "::1", "169.254.1.1", "fe80::1", "fe80::1%eth0", "224.0.0.1", "ff02::1", "0.0.0.0", "::", "::ffff:1.2.3.4"} {
		a := netip.MustParseAddr(text)
		cases["node at "+text] = unusable{
			func(c *clustermesh.Content) { c.Node.Addresses[1] = a }, "node us-east/n1: addresses[1]: " + text,
			func(c *clustermesh.Content) { c.Node.Addresses = c.Node.Addresses[:1] },
		}
		cases["inside "+text] = unusable{
			func(c *clustermesh.Content) { c.Node.Inside = a }, "node us-east/n1: inside: " + text,
			func(c *clustermesh.Content) { c.Node.Inside = netip.Addr{} },
		}
		cases["endpoint at "+text] = unusable{
			func(c *clustermesh.Content) { c.Endpoints[1].Addr = a }, "endpoint " + text + " of default/serve of cluster us-east: addr: " + text,
			func(c *clustermesh.Content) { c.Endpoints = c.Endpoints[:1] },
		}
	}
	first := func(c *clustermesh.Content) { c.Endpoints = c.Endpoints[1:] }
	long := strings.Repeat("x", 254)
	for name, c := range map[string]unusable{
		"no prefix": {func(c *clustermesh.Content) { c.Node.Prefixes[0] = netip.Prefix{} }, "node us-east/n1: prefixes[0]: invalid Prefix", func(c *clustermesh.Content) { c.Node.Prefixes = c.Node.Prefixes[1:] }},
		"an entry to what it lacks": {func(c *clustermesh.Content) {
			c.Node.ClusterIPs = []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16")}
		}, "node us-east/n1: clusterIPs[0]: 10.96.0.0/16 is none of its prefixes", func(c *clustermesh.Content) { c.Node.ClusterIPs = []netip.Prefix{} }},
		"another's name":                {func(c *clustermesh.Content) { c.Node.Name = "n2" }, `node us-east/n1: name: the record says "n2"`, func(c *clustermesh.Content) { c.Node = nil }},
		"long region":                   {func(c *clustermesh.Content) { c.Node.Locality.Region = long }, "node us-east/n1: locality.region: ", func(c *clustermesh.Content) { c.Node.Locality.Region = "" }},
		"long version":                  {func(c *clustermesh.Content) { c.Node.Version = long }, "node us-east/n1: version: ", func(c *clustermesh.Content) { c.Node.Version = "" }},
		"zone of two lines":             {func(c *clustermesh.Content) { c.Node.Locality.Zone = "a\nb" }, `node us-east/n1: locality.zone: "a\nb"`, func(c *clustermesh.Content) { c.Node.Locality.Zone = "" }},
		"exports of a node":             {func(c *clustermesh.Content) { c.Exports = saidByLeader().Exports }, "record us-east/n1: exports: ", func(*clustermesh.Content) {}},
		"globals of a node":             {func(c *clustermesh.Content) { c.Globals = saidByLeader().Globals }, "record us-east/n1: globals: ", func(*clustermesh.Content) {}},
		"addresses given out by a node": {func(c *clustermesh.Content) { c.Allocations = saidByLeader().Allocations }, "record us-east/n1: allocations: ", func(*clustermesh.Content) {}},
		"results of a node":             {func(c *clustermesh.Content) { c.Results = saidByLeader().Results }, "record us-east/n1: results: ", func(*clustermesh.Content) {}},
		"configuration of a node":       {func(c *clustermesh.Content) { c.Config = saidByLeader().Config }, "record us-east/n1: config: ", func(*clustermesh.Content) {}},
		"nodes of a node":               {func(c *clustermesh.Content) { c.Nodes = saidByLeader().Nodes }, "record us-east/n1: nodes: ", func(*clustermesh.Content) {}},
		"no address":                    {func(c *clustermesh.Content) { c.Endpoints[0].Addr = netip.Addr{} }, "endpoint invalid IP of default/serve of cluster us-east: addr: an address is missing", first},
		"no service":                    {func(c *clustermesh.Content) { c.Endpoints[0].Service.Name = "" }, `endpoint 10.1.0.5 of "default/" of cluster us-east: service: `, first},
		"another's endpoint":            {func(c *clustermesh.Content) { c.Endpoints[0].Node = "n2" }, "endpoint 10.1.0.5 of default/serve of cluster us-east: node: ", first},
		"an endpoint's zone":            {func(c *clustermesh.Content) { c.Endpoints[0].Zone = long }, "endpoint 10.1.0.5 of default/serve of cluster us-east: zone: ", func(c *clustermesh.Content) { c.Endpoints[0].Zone = "" }},
		"a hostname":                    {func(c *clustermesh.Content) { c.Endpoints[0].Hostname = "-a" }, "endpoint 10.1.0.5 of default/serve of cluster us-east: hostname: ", func(c *clustermesh.Content) { c.Endpoints[0].Hostname = "" }},
		"a pod's name":                  {func(c *clustermesh.Content) { c.Endpoints[0].Pod = "a b" }, "endpoint 10.1.0.5 of default/serve of cluster us-east: pod: ", func(c *clustermesh.Content) { c.Endpoints[0].Pod = "" }},
		"port zero":                     {func(c *clustermesh.Content) { c.Endpoints[0].Ports[0].Port = 0 }, "endpoint 10.1.0.5 of default/serve of cluster us-east: ports[0]: ", func(c *clustermesh.Content) { c.Endpoints[0].Ports = c.Endpoints[0].Ports[1:] }},
		"a port's name":                 {func(c *clustermesh.Content) { c.Endpoints[0].Ports[1].Name = "a/b" }, "endpoint 10.1.0.5 of default/serve of cluster us-east: ports[1]: ", func(c *clustermesh.Content) { c.Endpoints[0].Ports = c.Endpoints[0].Ports[:1] }},
		"claims itself":                 {func(c *clustermesh.Content) { c.Silent[0].Origin = ofNode }, "record us-east/n1: silent[0]: ", func(c *clustermesh.Content) { c.Silent = c.Silent[1:] }},
		"claims a cluster":              {func(c *clustermesh.Content) { c.Silent[0].Origin.Node = "" }, "record us-east/n1: silent[0]: ", func(c *clustermesh.Content) { c.Silent = c.Silent[1:] }},
	} {
		cases[name] = c
	}
	checkUnusable(t, ofNode, saidByNode, cases)
}

// What a leader says is bounded: it ends in API objects and kernel maps of every cluster.
func TestUsableOfLeaders(t *testing.T) {
	many := map[string]string{}
	for i := range 129 {
		many["k"+strconv.Itoa(i)] = ""
	}
	cases := map[string]unusable{
		"an address that is none":    {func(c *clustermesh.Content) { c.Allocations[0].IP = netip.Addr{} }, "ServiceImport default/serve of cluster us-east: ip: ", func(c *clustermesh.Content) { c.Allocations = c.Allocations[1:] }},
		"an address on loopback":     {func(c *clustermesh.Content) { c.Allocations[0].IP = netip.MustParseAddr("127.0.0.1") }, "ServiceImport default/serve of cluster us-east: ip: ", func(c *clustermesh.Content) { c.Allocations = c.Allocations[1:] }},
		"node of a cluster":          {func(c *clustermesh.Content) { c.Node = saidByNode().Node }, "record us-east: node: ", func(*clustermesh.Content) {}},
		"a revoked key that is none": {func(c *clustermesh.Content) { c.Revoked = []string{"n1"} }, "record us-east: revoked[0]: ", func(c *clustermesh.Content) { c.Revoked = []string{} }},
		"a withdrawal from no node":  {func(c *clustermesh.Content) { c.Withdrawn[0].Node = "" }, "record us-east: withdrawn[0]: ", func(c *clustermesh.Content) { c.Withdrawn = c.Withdrawn[1:] }},
		"a withdrawal twice":         {func(c *clustermesh.Content) { c.Withdrawn[1].Below = 7 }, "record us-east: withdrawn[1]: the list is not sorted", func(c *clustermesh.Content) { c.Withdrawn = slices.Delete(c.Withdrawn, 1, 2) }},
		"withdrawals in disorder":    {func(c *clustermesh.Content) { c.Withdrawn[2].Node = "n0" }, "record us-east: withdrawn[2]: the list is not sorted", func(c *clustermesh.Content) { c.Withdrawn = c.Withdrawn[:2] }},
		"silent of a cluster":        {func(c *clustermesh.Content) { c.Silent = saidByNode().Silent }, "record us-east: silent: ", func(*clustermesh.Content) {}},
	}
	// A node that is not among its cluster's Nodes has left: of these all or none counts.
	for name, spoil := range map[string]func(*clustermesh.Content){
		"a Node without a name": func(c *clustermesh.Content) { c.Nodes[0] = "" },
		"a Node's long name":    func(c *clustermesh.Content) { c.Nodes[1] = clustermesh.NodeName(strings.Repeat("x", 254)) },
		"a Node twice":          func(c *clustermesh.Content) { c.Nodes[1] = c.Nodes[0] },
		"Nodes in disorder":     func(c *clustermesh.Content) { slices.Reverse(c.Nodes) },
	} {
		cases[name] = unusable{spoil, "record us-east: nodes[", func(c *clustermesh.Content) { c.Nodes = nil }}
	}
	for name, f := range map[string]func(*clustermesh.Export){
		"port zero":                func(e *clustermesh.Export) { e.Ports[0].Port = 0 },
		"port name":                func(e *clustermesh.Export) { e.Ports[0].Name = "a b" },
		"appProtocol":              func(e *clustermesh.Export) { e.Ports[0].AppProtocol = strings.Repeat("x", 318) },
		"affinity beyond a day":    func(e *clustermesh.Export) { e.AffinitySeconds = 86401 },
		"long type":                func(e *clustermesh.Export) { e.Type = clustermesh.ServiceType(strings.Repeat("x", 65)) },
		"policy with a line break": func(e *clustermesh.Export) { e.InternalTrafficPolicy = "a\nb" },
		"long distribution":        func(e *clustermesh.Export) { e.TrafficDistribution = strings.Repeat("x", 65) },
		"unknown family":           func(e *clustermesh.Export) { e.Families[0] = "IPv5" },
		"a family twice":           func(e *clustermesh.Export) { e.Families[0] = clustermesh.IPv4 },
		"a label without a key":    func(e *clustermesh.Export) { e.Labels = map[string]string{"": "x"} },
		"too many labels":          func(e *clustermesh.Export) { e.Labels = many },
		"annotations too long":     func(e *clustermesh.Export) { e.Annotations["x"] = strings.Repeat("x", 64<<10) },
		"no name":                  func(e *clustermesh.Export) { e.Service.Name = "" },
		"three ClusterIPs":         func(e *clustermesh.Export) { e.IPs = slices.Repeat([]netip.Addr{netip.MustParseAddr("10.96.0.1")}, 3) },
		"ClusterIP of loopback":    func(e *clustermesh.Export) { e.IPs = []netip.Addr{netip.MustParseAddr("127.0.0.1")} },
	} {
		says := "ServiceExport default/serve of cluster us-east: "
		if name == "no name" {
			says = `ServiceExport "default/" of cluster us-east: `
		}
		cases["export's "+name] = unusable{func(c *clustermesh.Content) { f(&c.Exports[0]) }, says, func(c *clustermesh.Content) { c.Exports = c.Exports[1:] }}
	}
	for name, f := range map[string]func(*clustermesh.Global){
		"port zero":       func(g *clustermesh.Global) { g.Ports[0].Port = 0 },
		"three addresses": func(g *clustermesh.Global) { g.IPs = append(g.IPs, g.IPs[0]) },
		"no address":      func(g *clustermesh.Global) { g.IPs[0] = netip.Addr{} },
		"multicast":       func(g *clustermesh.Global) { g.IPs[0] = netip.MustParseAddr("224.0.0.1") },
		"affinity":        func(g *clustermesh.Global) { g.Affinity = clustermesh.GlobalAffinity(strings.Repeat("x", 65)) },
		"time-out":        func(g *clustermesh.Global) { g.AffinitySeconds = 86401 },
	} {
		cases["global's "+name] = unusable{func(c *clustermesh.Content) { f(&c.Globals[0]) }, "global Service default/serve of cluster us-east: ",
			func(c *clustermesh.Content) { c.Globals = c.Globals[1:] }}
	}
	for name, f := range map[string]func(*clustermesh.PolicyResult){
		"no policy":      func(r *clustermesh.PolicyResult) { r.Policy = "" },
		"a long policy":  func(r *clustermesh.PolicyResult) { r.Policy = strings.Repeat("x", 254) },
		"less than none": func(r *clustermesh.PolicyResult) { r.SkippedMore = -1 },
		"too many":       func(r *clustermesh.PolicyResult) { r.Skipped = make([]clustermesh.SkippedSource, 21) },
		"a source":       func(r *clustermesh.PolicyResult) { r.Skipped[0].Source = "a b" },
		"a reason":       func(r *clustermesh.PolicyResult) { r.Skipped[0].Reason = "a b" },
		"an escape":      func(r *clustermesh.PolicyResult) { r.Skipped[0].Message = "\x1b[2J" },
		"a long message": func(r *clustermesh.PolicyResult) { r.Skipped[0].Message = strings.Repeat("x", 1<<9+1) },
	} {
		cases["result's "+name] = unusable{func(c *clustermesh.Content) { f(&c.Results[0]) }, "record us-east: results[0]: ",
			func(c *clustermesh.Content) { c.Results = c.Results[1:] }}
	}
	for name, f := range map[string]func(*clustermesh.ConfigObject){
		"no kind":             func(o *clustermesh.ConfigObject) { o.Kind = "" },
		"a kind of two lines": func(o *clustermesh.ConfigObject) { o.Kind = "a\nb" },
		"no namespace":        func(o *clustermesh.ConfigObject) { o.Name.Namespace = "" },
		"a name":              func(o *clustermesh.ConfigObject) { o.Name.Name = "a b" },
		"no spec":             func(o *clustermesh.ConfigObject) { o.Spec = "" },
		"a spec that is text": func(o *clustermesh.ConfigObject) { o.Spec = `"x"` },
		"a spec that is cut":  func(o *clustermesh.ConfigObject) { o.Spec = `{"a": ` },
		"a large spec":        func(o *clustermesh.ConfigObject) { o.Spec = "{" + strings.Repeat(" ", 16<<10) + "}" },
		"an annotation":       func(o *clustermesh.ConfigObject) { o.Annotations["a b"] = "" },
		"a large annotation":  func(o *clustermesh.ConfigObject) { o.Annotations["a"] = strings.Repeat("x", 4<<10+1) },
		"too many annotations": func(o *clustermesh.ConfigObject) {
			for i := range 64 {
				o.Annotations[strconv.Itoa(i)] = ""
			}
		},
	} {
		cases["configuration: "+name] = unusable{func(c *clustermesh.Content) { f(&c.Config[0]) }, "record us-east: config[0]: ",
			func(c *clustermesh.Content) { c.Config = c.Config[1:] }}
	}
	checkUnusable(t, ofCluster, saidByLeader, cases)
}

// TestResultsCanBeSaid: whatever an API server answers, a record can carry it.
func TestResultsCanBeSaid(t *testing.T) {
	c := clustermesh.Content{Results: []clustermesh.PolicyResult{{Policy: "p"}}}
	for _, message := range []string{"two\nlines\x1b[2J", strings.Repeat("é", 1<<10), "\xff\xfe", ""} {
		c.Results[0].Skip("c1/shop/cart", "Refused", message)
	}
	for range clustermesh.MaxSkipped {
		c.Results[0].Skip("c1/shop/more", "Refused", "")
	}
	got, problems := record.Usable(ofCluster, c)
	if len(problems) > 0 || len(got.Results) != 1 || got.Results[0].Skipped[0].Message != "two lines [2J" || got.Results[0].SkippedMore != 4 {
		t.Errorf("%+v, %v", got.Results, problems)
	}
}

// A record that is bad all over does not fill the status.
func TestUsableBoundsItsProblems(t *testing.T) {
	c := saidByNode()
	for range 1000 {
		e := c.Endpoints[0]
		e.Service.Namespace, e.Addr = strings.Repeat("é", 1<<10), netip.Addr{}
		c.Endpoints = append(c.Endpoints, e)
	}
	got, problems := record.Usable(ofNode, c)
	if len(got.Endpoints) != 2 || len(problems) != 9 || !strings.Contains(problems[8].Message, "992 more") {
		t.Fatalf("%d endpoints, %d Problems, the last %v", len(got.Endpoints), len(problems), problems[len(problems)-1])
	}
	for _, p := range problems {
		if len(p.String()) > 2000 {
			t.Errorf("a Problem of %d bytes", len(p.String()))
		}
	}
}
