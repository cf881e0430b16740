package api

import (
	"net/netip"

	"strait.io/strait/datapath"
)

// KindNodeFacts is that of NodeFacts.
const KindNodeFacts = "NodeFacts"

// NodeFacts is what a machine has of what straitd needs, found out before straitd runs there. Unless
// stated otherwise, a text that ends in Error is empty if all is well.
type NodeFacts struct {
	Meta
	Node string `json:"node"`
	// Kernel is its release. Features are what it can do of what strait uses.
	Kernel        string             `json:"kernel"`
	Features      []datapath.Feature `json:"features,omitempty"`
	FeaturesError string             `json:"featuresError,omitempty"`
	// Cgroup is the cgroup v2 directory that strait would serve.
	Cgroup      string `json:"cgroup,omitempty"`
	CgroupError string `json:"cgroupError,omitempty"`
	// BPFFS is whether a BPF file system is mounted where the pins would be.
	BPFFS    bool   `json:"bpffs"`
	PinsPath string `json:"pinsPath"`
	NFTError string `json:"nftError,omitempty"`
	// WireGuard is "kernel" if it is there or can be loaded, "userspace" if only /dev/net/tun is, and
	// empty without both. Wanted is what the configuration asks for: "off", "auto" or one of these.
	WireGuard string `json:"wireGuard"`
	Wanted    string `json:"wanted"`
	// Link is the one that leads to other machines, and MTU its own; 0 if none does.
	Link string `json:"link,omitempty"`
	MTU  int    `json:"mtu,omitempty"`
	// Strict are links that drop what comes from a machine to which another link leads (rp_filter 1),
	// if there are several by which packets of other machines can come.
	Strict      []string `json:"strict,omitempty"`
	StrictError string   `json:"strictError,omitempty"`
	// Foreign are socket programs of other software in the cgroup.
	Foreign      []datapath.ForeignProgram `json:"foreign,omitempty"`
	ForeignError string                    `json:"foreignError,omitempty"`
	Ports        []PortFact                `json:"ports"`
}

// PortFact is a port that straitd would listen on.
type PortFact struct {
	// For is the part that would listen there, such as "gossip", and Setting where it is configured.
	For     string `json:"for"`
	Setting string `json:"setting"`
	// Port is such as "7946/UDP".
	Port string `json:"port"`
	// Probed is whether other nodes send to it.
	Probed bool `json:"probed,omitempty"`
	// Error is why it cannot be listened on.
	Error string `json:"error,omitempty"`
}

// NewNodeFacts completes what was found out.
func NewNodeFacts(f NodeFacts) *NodeFacts {
	f.Meta = Meta{APIVersion, KindNodeFacts}
	f.Ports = orEmpty(f.Ports)
	return &f
}

// PortProbe is what a preflight sends to another machine: to the ports that straitd would listen on
// there, each a "7946/UDP".
type PortProbe struct {
	Node  string     `json:"node"`
	Addr  netip.Addr `json:"addr"`
	Ports []string   `json:"ports"`
}

// PortReply is what came back from one port of another machine.
type PortReply struct {
	Node string     `json:"node"`
	Addr netip.Addr `json:"addr"`
	Port string     `json:"port"`
	// Error is why nothing came back; empty if something did. RTT is how long that took, in seconds, and
	// Ahead by how many seconds the other clock is ahead, as far as the round trip lets that be known.
	Error string  `json:"error,omitempty"`
	RTT   float64 `json:"rtt,omitempty"`
	Ahead float64 `json:"ahead,omitempty"`
}
