package daemon

import (
	"cmp"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/mcs"
	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/history/ring"
	"strait.io/strait/datapath/sockdestroy"
	"strait.io/strait/datapath/socklb"
	"strait.io/strait/datapath/socklb/inspect"
	"strait.io/strait/datapath/wireguard"
)

// Config is the whole configuration of straitd. It is read from YAML; unknown fields are errors.
// The zero value of every optional field means its default.
type Config struct {
	// Cluster is this cluster's name in the clusterset. With an API server it can be omitted, and
	// then comes from ClusterProperty cluster.clusterset.k8s.io. Node is the name of this machine's
	// Node object (default: the host name in lower case, as kubelet names it).
	Cluster string       `json:"cluster,omitempty"`
	Node    string       `json:"node,omitempty"`
	Source  SourceConfig `json:"source"`
	// StateDir holds what must survive a reboot: keys, and the last known state of the clusterset.
	StateDir string `json:"stateDir,omitempty"`
	// RunDir holds the API socket.
	RunDir string `json:"runDir,omitempty"`
	// ViewGroup is the ID of a group that may ask the daemon on a socket of its own; see View. 0 means that
	// there is no such socket.
	ViewGroup int `json:"viewGroup,omitempty"`
	// NodePrefixes are the prefixes of this node's pods. If empty, they come from annotation
	// strait.io/prefixes of the Node object, or else from its spec. If some pods have addresses
	// outside the prefixes of the spec, the pods' own addresses are used.
	NodePrefixes []netip.Prefix `json:"nodePrefixes,omitempty"`
	// ClusterSetCIDRs are the ranges of ClusterSetIPs, at most one of each IP family, and the same
	// in every cluster.
	ClusterSetCIDRs []netip.Prefix  `json:"clustersetCIDRs,omitempty"`
	BPF             BPFConfig       `json:"bpf,omitempty"`
	Gossip          GossipConfig    `json:"gossip"`
	Authority       AuthorityConfig `json:"authority,omitzero"`
	Mesh            MeshConfig      `json:"mesh,omitempty"`
	Locality        LocalityConfig  `json:"locality,omitzero"`
	// Replication are ServicePolicies, besides those of the source.
	Replication []ReplicationConfig `json:"replication,omitempty"`
	DNS         DNSConfig           `json:"dns,omitempty"`
	History     HistoryConfig       `json:"history,omitzero"`
	Metrics     MetricsConfig       `json:"metrics,omitempty"`
	Log         LogConfig           `json:"log,omitempty"`
}

// SourceConfig is where the cluster's objects come from. Exactly one field must be set.
type SourceConfig struct {
	// Manifest is a directory of Kubernetes YAML.
	Manifest string `json:"manifest,omitempty"`
	// Kubernetes is an API server.
	Kubernetes *KubernetesConfig `json:"kubernetes,omitempty"`
}

// where describes the source for people.
func (s SourceConfig) where() string {
	if s.Kubernetes != nil {
		return "the API server"
	}
	return s.Manifest
}

// KubernetesConfig configures the cluster's API server as the source.
type KubernetesConfig struct {
	// Kubeconfig is a file; empty means the service account of the pod that straitd runs in.
	Kubeconfig string `json:"kubeconfig,omitempty"`
	// Namespace is strait's own: it holds the leader's Lease.
	Namespace string `json:"namespace,omitempty"`
	// LeaderDir is where a pod of this node lends the daemon what it needs to lead its cluster: a token
	// for the API server, with which it writes, and the root. Without it, the daemon writes with its
	// own account. See package lend.
	LeaderDir string `json:"leaderDir,omitempty"`
	// ClusterSetIPs is where ClusterSetIPs come from: derived Services, or the clustersetCIDRs.
	ClusterSetIPs mcs.IPMode `json:"clusterSetIPs,omitempty"`
	// DerivedPrefix is prepended to the names of derived Services. Nil means mcs.DerivedPrefix;
	// with the empty string they are named like their imports.
	DerivedPrefix *string `json:"derivedPrefix,omitempty"`
	// ImportSlices selects the imports for which EndpointSlices with all endpoints are written.
	ImportSlices mcs.SliceMode `json:"importSlices,omitempty"`
	// DrainCordoned drains Nodes that are cordoned.
	DrainCordoned bool `json:"drainCordoned,omitempty"`
	// DefaultGlobalNamespace is whether the Services of a namespace may be shared that has no
	// annotation clustermesh.cilium.io/global. Nil means true.
	DefaultGlobalNamespace *bool `json:"defaultGlobalNamespace,omitempty"`
	// BarredNamespaces are patterns of namespaces that take no part, besides kube-system,
	// kube-public and kube-node-lease.
	BarredNamespaces []string `json:"barredNamespaces,omitempty"`
	// AcceptConfigFrom are the pinned clusters whose MultiClusterServices and MultiClusterIngresses are
	// carried out here too. One that is listed before another goes before it.
	AcceptConfigFrom []clustermesh.ClusterName `json:"acceptConfigFrom,omitempty"`
}

// BPFConfig configures the socket load balancer.
type BPFConfig struct {
	// Pins is a directory on a bpffs.
	Pins string `json:"pins,omitempty"`
	// Cgroup is the cgroup v2 directory whose sockets are served; empty means the root.
	Cgroup           string `json:"cgroup,omitempty"`
	AllowVirtualRoot bool   `json:"allowVirtualRoot,omitempty"`
	// BelowRoot is as in socklb.Config.
	BelowRoot    bool   `json:"belowRoot,omitempty"`
	MaxFrontends uint32 `json:"maxFrontends,omitempty"`
	MaxBackends  uint32 `json:"maxBackends,omitempty"`
	MaxSockets   uint32 `json:"maxSockets,omitempty"`
	MaxAffinity  uint32 `json:"maxAffinity,omitempty"`
	MaxOptOuts   uint32 `json:"maxOptOuts,omitempty"`
	// DestroySockets is whether sockets to backends that are gone are closed, for which the daemon
	// enters the network namespaces of pods. Nil means true.
	DestroySockets *bool `json:"destroySockets,omitempty"`
	// DestroyTCP is which TCP connections to backends that are gone are closed. Connected UDP
	// sockets to such backends are always closed.
	DestroyTCP sockdestroy.TCPPolicy `json:"destroyTCP,omitempty"`
	// UnreadyGrace is how long connected UDP sockets stay with a pod that is not ready. Nil means
	// sockdestroy.DefaultGrace; with 0 they are closed at once.
	UnreadyGrace *Duration `json:"unreadyGrace,omitempty"`
}

// socklb converts b for package socklb, where a size of zero means its default.
func (b BPFConfig) socklb() socklb.Config {
	return socklb.Config{
		Pins: b.Pins, Cgroup: b.Cgroup, AllowVirtualRoot: b.AllowVirtualRoot, BelowRoot: b.BelowRoot,
		MaxFrontends: b.MaxFrontends, MaxBackends: b.MaxBackends, MaxSockets: b.MaxSockets,
		MaxAffinity: b.MaxAffinity, MaxOptOuts: b.MaxOptOuts,
	}
}

func (b BPFConfig) destroySockets() bool { return b.DestroySockets == nil || *b.DestroySockets }

func (b BPFConfig) unreadyGrace() time.Duration {
	if b.UnreadyGrace == nil {
		return sockdestroy.DefaultGrace
	}
	return b.UnreadyGrace.Duration
}

// GossipConfig configures membership and the exchange of records.
type GossipConfig struct {
	Bind netip.AddrPort `json:"bind,omitzero"`
	// Advertise is the address that other nodes dial. The default is Bind, or for a wildcard the
	// Node object's first address with Bind's port.
	Advertise netip.AddrPort `json:"advertise,omitzero"`
	Seeds     []string       `json:"seeds,omitempty"`
	// SeedsFile lists one HOST:PORT per line. It is read again when it changes.
	SeedsFile string `json:"seedsFile,omitempty"`
	KeyFile   string `json:"keyFile"`
	// Relay is auto, never or only. The label clustermesh.LabelRelay of a Node that says never or
	// only comes first.
	Relay string `json:"relay,omitempty"`
}

// AuthorityConfig has the key with which this cluster signs, and the clusters that it trusts. Without it,
// nothing is signed, and every holder of the gossip key is trusted.
type AuthorityConfig struct {
	// Mode is off if every holder of the gossip key shall be trusted. The zero value is on.
	Mode AuthorityMode `json:"mode,omitempty"`
	// RootFile holds the private key of this cluster's root.
	RootFile string `json:"rootFile,omitempty"`
	// PinsFile lists the clusters that are trusted. It is read again when it changes.
	PinsFile string `json:"pinsFile,omitempty"`
	// MembersDir holds a file for each cluster, as authority.Member. If there are any, the clusters
	// in them are trusted, and those in PinsFile but this one are not. It is read again when it
	// changes.
	MembersDir string `json:"membersDir,omitempty"`
	// TrustLevel is whether only the clusters in PinsFile are trusted, which is the default.
	TrustLevel TrustLevel `json:"believe,omitempty"`
	// TrustLevelFile has the same setting, and can come later: until it exists, every holder of the
	// gossip key is trusted. It is read again when it changes.
	TrustLevelFile string `json:"believeFile,omitempty"`
	// TokenFile holds a token of this node's service account, for the audience of package kube. A
	// machine without RootFile proves with it which node it is.
	TokenFile string `json:"tokenFile,omitempty"`
	// Make names the objects in which the leader makes the root, the cluster's own pin and the token of
	// strait-view, if there are none.
	Make *MakeConfig `json:"make,omitempty"`
	// Publish names the ConfigMap in which the leader says what others need to pin this cluster.
	Publish string `json:"publish,omitempty"`
}

// MakeConfig names a Secret for the root, a ConfigMap for the pins, and one that TrustLevelFile comes from;
// and a Secret for the token of strait-view, which is not made if its name is empty.
type MakeConfig struct {
	Secret     string `json:"secret"`
	Pins       string `json:"pins"`
	TrustLevel string `json:"believe"`
	View       string `json:"view,omitempty"`
}

// leads reports whether this machine may write its cluster's record. With pins, that needs the root.
func (a AuthorityConfig) leads() bool { return a.RootFile != "" || a.PinsFile == "" }

// later reports whether a file can restrict trust to the pins while the daemon runs.
func (a AuthorityConfig) later() bool { return a.TrustLevelFile != "" }

func (a AuthorityConfig) on() bool { return a.Mode != AuthorityOff && a != AuthorityConfig{} }

// MeshConfig configures WireGuard.
type MeshConfig struct {
	Mode   MeshMode `json:"mode,omitempty"`
	Device string   `json:"device,omitempty"`
	Port   uint16   `json:"port,omitempty"`
	// MTU is the tunnel's MTU, whatever the underlays have; 0 derives it from them, for each peer.
	MTU int `json:"mtu,omitempty"`
	// Implementation is the kind of WireGuard device to use.
	Implementation wireguard.Kind `json:"implementation,omitempty"`
	Tunnel         TunnelOwner    `json:"tunnel,omitempty"`
	// Strict keeps packets to the pinned pod ranges of other clusters inside the tunnels. Nil means
	// true.
	Strict *bool `json:"strict,omitempty"`
	// Table is the number of strait's own routing table; 0 is route.DefaultTable.
	Table int `json:"table,omitempty"`
	// PeersFile lists the machines outside every cluster that nodes accept as peers. It is read again
	// when it changes, and need not exist.
	PeersFile string `json:"peersFile,omitempty"`
}

func (m MeshConfig) on() bool { return m.Mode != MeshOff }

func (m MeshConfig) strict() bool { return m.Strict == nil || *m.Strict }

// LocalityConfig is where connections go, for Services without annotations of their own.
type LocalityConfig struct {
	// Spill is on by default: a tier keeps only what its ready endpoints can bear. With off, one
	// ready endpoint carries everything.
	Spill SpillMode `json:"spill,omitempty"`
	// Factor is how many times its share an endpoint can bear. 0 is DefaultFactor.
	Factor float64 `json:"factor,omitempty"`
	// Ramp is how long traffic takes to return to nearer endpoints. Nil is DefaultRamp; with 0 it
	// returns at once.
	Ramp *Duration `json:"ramp,omitempty"`
	// Tiers and Prefer are the values of the annotations service.strait.io/locality and /prefer for
	// Services without them.
	Tiers  []string                  `json:"tiers,omitempty"`
	Prefer []clustermesh.ClusterName `json:"prefer,omitempty"`
	// Costs are those of traffic from one cluster to another.
	Costs map[clustermesh.ClusterName]map[clustermesh.ClusterName]uint32 `json:"costs,omitempty"`
	// Distance is DistanceRTT by default. It counts in clusters without Costs.
	Distance DistanceMode `json:"distance,omitempty"`
}

// DNSConfig configures strait's own DNS server for clusterset.local. Without Listen there is none.
type DNSConfig struct {
	// Listen are the addresses and ports to listen on. Those in 169.254.0.0/16 or fd00::/8 are
	// assigned to this machine.
	Listen []netip.AddrPort `json:"listen,omitempty"`
	// Upstreams answer for every other zone.
	Upstreams []netip.AddrPort `json:"upstreams,omitempty"`
	// FallThrough is the cluster's own zone. Names of Services in it that the upstreams do not know
	// are answered like those in clusterset.local. Empty means that there is no such zone.
	FallThrough string `json:"fallThrough,omitempty"`
	// Probe is the cluster's own DNS, which the leader asks whether it answers for clusterset.local,
	// while there are names to look up. The default is the Service of the cluster's DNS.
	Probe AddrOrOff `json:"probe,omitzero"`
}

// HistoryConfig is how much the node keeps of what changed and why.
type HistoryConfig struct {
	// MaxBytes bounds what is kept in stateDir/history. Nil means ring.DefaultMaxBytes; with 0
	// nothing is kept.
	MaxBytes *int64 `json:"maxBytes,omitempty"`
	// MaxAge, if not 0, is after which time what is kept is removed.
	MaxAge Duration `json:"maxAge,omitzero"`
}

func (h HistoryConfig) maxBytes() int64 {
	if h.MaxBytes == nil {
		return ring.DefaultMaxBytes
	}
	return *h.MaxBytes
}

func (h HistoryConfig) validate(m *mistakes) {
	if n := h.maxBytes(); n != 0 && n < ring.MinBytes {
		m.add("history.maxBytes", "%d is too little to be of use: want 0, which keeps nothing, or at least %d", n, ring.MinBytes)
	}
	if h.MaxAge.Duration < 0 {
		m.add("history.maxAge", "%s is negative: want 0s, which keeps what history.maxBytes has room for, or a time such as 24h", h.MaxAge.Duration)
	}
}

// MetricsConfig configures /metrics, /healthz and /readyz.
type MetricsConfig struct {
	Listen AddrOrOff `json:"listen,omitzero"`
}

// LogConfig configures the log on standard error.
type LogConfig struct {
	Level  LogLevel  `json:"level,omitzero"`
	Format LogFormat `json:"format,omitempty"`
}

// ReadConfig reads a file and parses it like ParseConfig. Its error lists every mistake, one per
// line.
func ReadConfig(path string, override func(*Config) error) (Config, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Config{}, fmt.Errorf("read config: %w; see docs/configuration.md for its fields, or name another file with --config", err)
	}
	c, err := ParseConfig(data, override)
	if err != nil {
		return c, fmt.Errorf("%s:\n  %s", path, strings.ReplaceAll(err.Error(), "\n", "\n  "))
	}
	return c, nil
}

// ParseConfig decodes YAML, lets override apply the flags, fills in defaults, and validates. Its
// error joins all mistakes, each with its path: unknown fields, values that do not decode, and
// values that make no sense.
func ParseConfig(data []byte, override func(*Config) error) (Config, error) {
	js, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return Config{}, err
	}
	var c Config
	var m mistakes
	m.decode("", js, reflect.ValueOf(&c).Elem())
	if err := override(&c); err != nil {
		m.errs = append(m.errs, err)
	}
	c.setDefaults()
	c.validate(&m)
	return c, m.err()
}

// nodeName returns the name of the Node object of a machine, as kubelet makes it from its host name.
func nodeName(host string) string { return strings.ToLower(strings.TrimSpace(host)) }

// setDefaults fills in the defaults that the daemon itself owns. Other zero values are passed on to
// packages that have their own defaults. The WireGuard port is filled in because the daemon
// publishes it.
func (c *Config) setDefaults() {
	if c.Node == "" {
		host, _ := os.Hostname()
		c.Node = nodeName(host)
	}
	c.StateDir = cmp.Or(c.StateDir, "/var/lib/strait")
	c.RunDir = cmp.Or(c.RunDir, filepath.Dir(api.DefaultSocket))
	if len(c.ClusterSetCIDRs) == 0 {
		// Part of 240.0.0.0/4, which no network routes and no cluster uses: a ClusterSetIP never
		// leaves the node.
		c.ClusterSetCIDRs = []netip.Prefix{netip.MustParsePrefix("241.0.0.0/8")}
	}
	if k := c.Source.Kubernetes; k != nil {
		k.Namespace = cmp.Or(k.Namespace, clustermesh.DefaultNamespace)
	}
	c.BPF.Pins = cmp.Or(c.BPF.Pins, inspect.DefaultPins)
	c.Gossip.Bind = cmp.Or(c.Gossip.Bind, netip.AddrPortFrom(netip.IPv4Unspecified(), 7946))
	c.Gossip.KeyFile = cmp.Or(c.Gossip.KeyFile, "/etc/strait/gossip.key")
	c.Mesh.Device = cmp.Or(c.Mesh.Device, "strait0")
	c.Mesh.Port = cmp.Or(c.Mesh.Port, wireguard.DefaultPort)
	c.Mesh.PeersFile = cmp.Or(c.Mesh.PeersFile, authority.GuestsFile)
	c.Metrics.Listen = cmp.Or(c.Metrics.Listen, AddrOrOff{Addr: netip.MustParseAddrPort("127.0.0.1:9964")})
}

// View returns the path of the API socket for ViewGroup; empty if there is none.
func (c Config) View() string {
	if c.ViewGroup == 0 {
		return ""
	}
	return filepath.Join(c.RunDir, "view", filepath.Base(api.DefaultSocket))
}

// Socket returns the path of the API socket.
func (c Config) Socket() string { return filepath.Join(c.RunDir, filepath.Base(api.DefaultSocket)) }
