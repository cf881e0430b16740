// Package connectivity decides what strait connectivity test makes in clusters, which calls its pods
// make, and what their outcomes mean, down to the part that is to blame.
//
// Inputs are what the clusters have and answer; outputs are objects, cases, results and causes. Pure:
// it must not know how pods are made or reached, nor how results are printed. Its folder agent is what
// runs in the pods.
package connectivity

import (
	"net/netip"
	"strings"
)

// Identity is a pod of the test.
type Identity struct {
	Cluster string `json:"cluster"`
	Node    string `json:"node"`
	Pod     string `json:"pod"`
}

// ParseIdentity reads CLUSTER/NODE/POD.
func ParseIdentity(text string) (id Identity, ok bool) {
	parts := strings.Split(text, "/")
	if len(parts) != 3 || parts[0] == "" || parts[1] == "" || parts[2] == "" {
		return id, false
	}
	return Identity{parts[0], parts[1], parts[2]}, true
}

func (i Identity) String() string { return i.Cluster + "/" + i.Node + "/" + i.Pod }

// Call is what a client pod is asked to do: to send a request of Size bytes to a host, and to get an
// answer of the same size.
type Call struct {
	ID int `json:"id"`
	// Network is tcp4, tcp6, udp4 or udp6.
	Network string `json:"network"`
	// Host is a name, or an address.
	Host string `json:"host"`
	Port uint16 `json:"port"`
	Size int    `json:"size"`
	// PatienceMillis is for how long failed calls are repeated.
	PatienceMillis int `json:"patienceMillis"`
}

// Stage is how far a call came.
type Stage string

// The stages of a call, in order.
const (
	Resolve Stage = "resolve"
	Connect Stage = "connect"
	Send    Stage = "send"
	Receive Stage = "receive"
	Done    Stage = "done"
)

// Outcome is what became of a call.
type Outcome struct {
	ID int `json:"id"`
	// Stage is the one at which the last try failed, or Done.
	Stage Stage  `json:"stage"`
	Error string `json:"error,omitempty"`
	Tries int    `json:"tries"`
	// Server is the pod that answered.
	Server Identity `json:"server,omitzero"`
	// Seen is the address that the server had as the client's.
	Seen   netip.Addr `json:"seen,omitzero"`
	Millis float64    `json:"millis,omitempty"`
}

// Client is a pod that calls.
type Client struct {
	Identity
	// Host is true for a pod in the node's network.
	Host      bool
	Addresses []netip.Addr
}

// Kind is "pod" or "host".
func (c Client) Kind() string {
	if c.Host {
		return "host"
	}
	return "pod"
}

// Server is a pod that answers.
type Server struct {
	Identity
	Addresses []netip.Addr
}

// Cluster is one cluster of the test, with what was made in it.
type Cluster struct {
	Name, Context string
	Clients       []Client
	Servers       []Server
	// Imports are the ClusterSetIPs that the cluster has for the Service of each cluster; a cluster whose
	// ServiceImport is missing here is not in it.
	Imports map[string][]netip.Addr
}

// Ports of the Services, and of the pods behind them.
const (
	ServicePort = 80
	PodPort     = 8080
)

// ServiceOf names the Service that only one cluster exports, and HeadlessOf its headless one. A
// cluster's id is a DNS label, as are these.
func ServiceOf(cluster string) string { return prefixed("to-", cluster) }

// HeadlessOf names the headless Service of a cluster.
func HeadlessOf(cluster string) string { return prefixed("pods-", cluster) }

const maxLabel = 63

// prefixed is a label of at most 63 characters. Of a long one, it keeps the end.
func prefixed(prefix, cluster string) string {
	if over := len(prefix) + len(cluster) - maxLabel; over > 0 {
		cluster = strings.TrimLeft(cluster[over:], "-")
	}
	return prefix + cluster
}
