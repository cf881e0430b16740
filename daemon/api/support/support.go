// Package support keeps what the daemons of clusters answered at one time in a file, for people who
// look later or elsewhere: a support bundle.
//
// Inputs are clients of daemons (package client), or such a file; outputs are the file, or a
// client.Transport that answers from it. It has only what daemons answer, so no secrets: those have
// none in their answers. It must not know how answers are shown, nor Kubernetes.
package support

import (
	"time"

	"strait.io/strait/daemon/api"
)

// Kind is the kind of the manifest.
const Kind = "SupportBundle"

// Paths are the queries whose answers are kept of each node, below /v1/. The others follow from
// these.
var Paths = []string{"status", "services", "nodes", "members", "policies", "peers", "flows", "traffic", "history", "logs"}

// tunnels is the query that one node answers for all, and that is refused in large clustersets.
const tunnels = "tunnels"

// Bounds on a bundle that is written, and on one that is read, whose sizes are those after
// decompression, in bytes.
const (
	maxBytes = 256 << 20
	maxFiles = 20_000
)

// Manifest is the first file of a bundle.
type Manifest struct {
	api.Meta
	// Time is when the answers were asked for.
	Time time.Time `json:"time"`
	// Client is the version of the program that asked.
	Client   string    `json:"client"`
	Clusters []Cluster `json:"clusters"`
}

// Cluster is a cluster that was asked.
type Cluster struct {
	Name string `json:"name"`
	// Context is that of the kubeconfig by which it was asked, if one was.
	Context string `json:"context,omitempty"`
	// Node is the node that asked the others.
	Node string `json:"node"`
	// Missing has why there is no answer, by "NODE/PATH", or by "PATH" if no node was asked.
	Missing map[string]string `json:"missing,omitempty"`
}

// Bundle is the manifest and the answers, by "CLUSTER/NODE/PATH".
type Bundle struct {
	Manifest
	answers map[string][]byte
}

// New makes an empty bundle.
func New(now time.Time, version string) *Bundle {
	return &Bundle{Manifest{api.Meta{APIVersion: api.APIVersion, Kind: Kind}, now, version, nil}, map[string][]byte{}}
}

// Size returns how many answers the bundle has, and their bytes.
func (b *Bundle) Size() (answers, bytes int) {
	for _, a := range b.answers {
		bytes += len(a)
	}
	return len(b.answers), bytes
}

// Missing counts the answers that are missing.
func (b *Bundle) Missing() (n int) {
	for _, c := range b.Clusters {
		n += len(c.Missing)
	}
	return n
}

func key(cluster, node, path string) string { return cluster + "/" + node + "/" + path }
