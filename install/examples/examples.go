// Package examples writes the YAML of the example clusters, so that the committed files, the demo
// and the tests have one source.
//
// Input is a cluster's name, location and size; output is text by file name. Pure: it must not know
// who reads the files.
package examples

import (
	"embed"
	"fmt"
	"net/netip"
	"strings"

	template "github.com/DataDog/datadog-agent/pkg/template/text"
)

//go:embed templates/*.tmpl
var sources embed.FS

var templates = template.Must(template.ParseFS(sources, "templates/*.tmpl"))

// Cluster describes the cluster to write. All addresses follow from its index and the number of the
// node: see Underlay, PodCIDR and the methods after them.
type Cluster struct {
	Name   string
	Region string
	// Index is 1…255, and different in every cluster.
	Index int
	// Nodes is 1…254.
	Nodes int
	// Far adds the Service "far", which only one cluster of the example has.
	Far bool
}

// Serve returns the clusters of the example "serve", each with the given number of nodes.
func Serve(nodes int) []Cluster {
	return []Cluster{
		{Name: "us-east", Region: "us-east-1", Index: 1, Nodes: nodes},
		{Name: "us-west", Region: "us-west-2", Index: 2, Nodes: nodes},
		{Name: "eu-central", Region: "eu-central-1", Index: 3, Nodes: nodes, Far: true},
	}
}

// NodeName is the name of node n, from 1.
func (c Cluster) NodeName(n int) string { return fmt.Sprintf("%s-%d", c.Name, n) }

// Zone is the zone of node n. Nodes are in the region's zones a, b and c in turn.
func (c Cluster) Zone(n int) string { return c.Region + string("abc"[(n-1)%3]) }

// Underlay is the address at which other nodes reach node n: 172.31.C.N.
func (c Cluster) Underlay(n int) netip.Addr {
	return netip.AddrFrom4([4]byte{172, 31, byte(c.Index), byte(n)})
}

// PodCIDR is the range of the pods of node n: 10.C.N.0/24.
func (c Cluster) PodCIDR(n int) netip.Prefix { return netip.PrefixFrom(c.pod(n, 0), 24) }

// Gateway is the node's own address towards its pods: 10.C.N.1.
func (c Cluster) Gateway(n int) netip.Addr { return c.pod(n, 1) }

// ServePod is the address of pod serve-N: 10.C.N.10.
func (c Cluster) ServePod(n int) netip.Addr { return c.pod(n, 10) }

// FarPod is the address of pod far-N: 10.C.N.30.
func (c Cluster) FarPod(n int) netip.Addr { return c.pod(n, 30) }

func (c Cluster) pod(n, host int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, byte(c.Index), byte(n), byte(host)})
}

// machine and service are what the templates see.
type machine struct {
	Name, Zone string
	Address    netip.Addr
	PodCIDR    netip.Prefix
}

type service struct {
	Service, About string
	Pods           []pod
}

type pod struct {
	Name, Node, Zone string
	Address          netip.Addr
}

// Files returns the cluster's files by name: "nodes.yaml", "serve.yaml" and, in one cluster,
// "far.yaml".
func Files(c Cluster) map[string]string {
	serve := service{Service: "serve", About: "The Service that every cluster has: its pods answer with who they are, over HTTP and UDP."}
	far := service{Service: "far", About: "A Service that only this cluster has: for the others it is always far away."}
	var machines []machine
	for n := 1; n <= c.Nodes; n++ {
		machines = append(machines, machine{c.NodeName(n), c.Zone(n), c.Underlay(n), c.PodCIDR(n)})
		serve.Pods = append(serve.Pods, pod{fmt.Sprintf("serve-%d", n), c.NodeName(n), c.Zone(n), c.ServePod(n)})
		far.Pods = append(far.Pods, pod{fmt.Sprintf("far-%d", n), c.NodeName(n), c.Zone(n), c.FarPod(n)})
	}
	out := map[string]string{
		"nodes.yaml": render("nodes.yaml.tmpl", struct {
			Cluster
			Machines []machine
		}{c, machines}),
		"serve.yaml": render("service.yaml.tmpl", serve),
	}
	if c.Far {
		out["far.yaml"] = render("service.yaml.tmpl", far)
	}
	return out
}

func render(name string, data any) string {
	var b strings.Builder
	if err := templates.ExecuteTemplate(&b, name, data); err != nil {
		panic(err) // the templates are part of the program
	}
	return b.String()
}
