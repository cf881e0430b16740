package daemon

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"strait.io/strait/clustermesh/mcs"
	"strait.io/strait/datapath/socklb"
)

// Config is everything that straitd can be told. It is read from YAML with unknown fields refused; the
// zero value of every optional field means its default.
type Config struct {
	// Cluster is this cluster's name in the clusterset; in Kubernetes it may be left to the ClusterProperty
	// cluster.clusterset.k8s.io. Node is the name of its Node object that is this machine (default: the host name).
	Cluster string       `json:"cluster,omitempty"`
	Node    string       `json:"node,omitempty"`
	Source  SourceConfig `json:"source"`
	// StateDir keeps what must survive a reboot: keys, the last known state of the clusterset.
	StateDir string `json:"stateDir,omitempty"`
	// RunDir holds the API socket.
	RunDir string `json:"runDir,omitempty"`
	// NodePrefixes are the prefixes of this node's pods; empty means what the Node object says in annotation
	// strait.io/prefixes, else in its spec, or where its pods have other addresses, those.
	NodePrefixes []string `json:"nodePrefixes,omitempty"`
	// ClusterSetCIDRs are the ranges of ClusterSetIPs, at most one of each IP family, and the same in
	// every cluster.
	ClusterSetCIDRs []string      `json:"clustersetCIDRs,omitempty"`
	BPF             BPFConfig     `json:"bpf,omitempty"`
	Gossip          GossipConfig  `json:"gossip"`
	Mesh            MeshConfig    `json:"mesh,omitempty"`
	DNS             DNSConfig     `json:"dns,omitempty"`
	Metrics         MetricsConfig `json:"metrics,omitempty"`
	Log             LogConfig     `json:"log,omitempty"`
}

// SourceConfig says where the cluster's objects come from: exactly one is given.
type SourceConfig struct {
	// Manifest is a directory of Kubernetes YAML.
	Manifest string `json:"manifest,omitempty"`
	// Kubernetes is an API server.
	Kubernetes *KubernetesConfig `json:"kubernetes,omitempty"`
}

// where names the source for people.
func (s SourceConfig) where() string {
	if s.Kubernetes != nil {
		return "the API server"
	}
	return s.Manifest
}

// KubernetesConfig is about the cluster's API server.
type KubernetesConfig struct {
	// Kubeconfig is a file; empty means the account of the pod that straitd runs in.
	Kubeconfig string `json:"kubeconfig,omitempty"`
	// Namespace is strait's own: it holds the leader's Lease.
	Namespace string `json:"namespace,omitempty"`
	// ClusterSetIPs says where they come from: "derived" Services, or "cidr", the clustersetCIDRs.
	ClusterSetIPs string `json:"clusterSetIPs,omitempty"`
	// DerivedPrefix begins the names of derived Services; an empty one gives them the names of their imports.
	DerivedPrefix *string `json:"derivedPrefix,omitempty"`
	// ImportSlices says for which imports EndpointSlices with all endpoints are written: "all", "headless", "none".
	ImportSlices string `json:"importSlices,omitempty"`
	// BarredNamespaces are patterns of namespaces that take no part, besides the cluster's own.
	BarredNamespaces []string `json:"barredNamespaces,omitempty"`
}

// BPFConfig is about the socket load balancer.
type BPFConfig struct {
	// Pins is a directory on a bpffs.
	Pins string `json:"pins,omitempty"`
	// Cgroup is the cgroup v2 directory whose sockets are served; empty means the root.
	Cgroup           string `json:"cgroup,omitempty"`
	AllowVirtualRoot bool   `json:"allowVirtualRoot,omitempty"`
	MaxFrontends     uint32 `json:"maxFrontends,omitempty"`
	MaxBackends      uint32 `json:"maxBackends,omitempty"`
	MaxSockets       uint32 `json:"maxSockets,omitempty"`
	MaxAffinity      uint32 `json:"maxAffinity,omitempty"`
	MaxOptOuts       uint32 `json:"maxOptOuts,omitempty"`
	// DestroyTCP says which TCP connections to backends that are gone are closed: "never", or "gone", those
	// to dead machines. Connected UDP sockets always are.
	DestroyTCP string `json:"destroyTCP,omitempty"`
}

// socklb is the load balancer's own form of it; zero sizes are its defaults.
func (b BPFConfig) socklb() socklb.Config {
	return socklb.Config{
		Pins: b.Pins, Cgroup: b.Cgroup, AllowVirtualRoot: b.AllowVirtualRoot,
		MaxFrontends: b.MaxFrontends, MaxBackends: b.MaxBackends, MaxSockets: b.MaxSockets,
		MaxAffinity: b.MaxAffinity, MaxOptOuts: b.MaxOptOuts,
	}
}

// GossipConfig is about membership and records.
type GossipConfig struct {
	Bind string `json:"bind,omitempty"`
	// Advertise is what others dial; default: Bind, or for a wildcard the Node object's first address.
	Advertise string   `json:"advertise,omitempty"`
	Seeds     []string `json:"seeds,omitempty"`
	// SeedsFile has a HOST:PORT a line, and is read again when it changes.
	SeedsFile string `json:"seedsFile,omitempty"`
	KeyFile   string `json:"keyFile"`
}

// MeshConfig is about WireGuard.
type MeshConfig struct {
	// Mode is "wireguard" or "off" (pods of other clusters are routable without strait).
	Mode   string `json:"mode,omitempty"`
	Device string `json:"device,omitempty"`
	Port   uint16 `json:"port,omitempty"`
	// MTU is that of the tunnel; 0 derives it from the underlay.
	MTU int `json:"mtu,omitempty"`
	// Implementation is "auto" (kernel, else userspace), "kernel" or "userspace".
	Implementation string `json:"implementation,omitempty"`
	// Tunnel says who starts the process of a userspace device: "own", the daemon, or "external", somebody whose
	// processes outlive the daemon's, such as a DaemonSet of its own.
	Tunnel string `json:"tunnel,omitempty"`
	// Table is the number of strait's own routing table.
	Table int `json:"table,omitempty"`
}

// DNSConfig is about strait's own answers for clusterset.local; no Listen means none.
type DNSConfig struct {
	// Listen are addresses and ports; those that are link-local or of fd00::/8 are made the machine's own.
	Listen []string `json:"listen,omitempty"`
	// Upstreams answer for every other zone.
	Upstreams []string `json:"upstreams,omitempty"`
}

// MetricsConfig is about /metrics, /healthz and /readyz.
type MetricsConfig struct {
	// Listen is an address and port, or "off".
	Listen string `json:"listen,omitempty"`
}

// LogConfig is about the log on standard error.
type LogConfig struct {
	// Level is debug, info, warn or error; Format is text or json.
	Level  string `json:"level,omitempty"`
	Format string `json:"format,omitempty"`
}

// ReadConfig reads a file, fills in defaults, lets override change what flags say, and validates. Its error
// holds every mistake that it found, one a line.
func ReadConfig(path string, override func(*Config)) (Config, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Config{}, fmt.Errorf("read config: %w; docs/configuration.md says what goes into it, --config names another file", err)
	}
	c, unknown, err := ParseConfig(data)
	if err == nil {
		override(&c)
		err = errors.Join(unknown, c.Validate())
	}
	if err != nil {
		return c, fmt.Errorf("%s:\n  %s", path, strings.ReplaceAll(err.Error(), "\n", "\n  "))
	}
	return c, nil
}

// ParseConfig decodes and fills in defaults; it does not validate. Unknown are the fields that do not
// exist or that stand there twice, err is why nothing could be decoded.
func ParseConfig(data []byte) (c Config, unknown, err error) {
	js, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return Config{}, nil, err
	}
	strict, err := json.UnmarshalStrict(js, &c, json.DisallowUnknownFields)
	if err != nil {
		return Config{}, nil, errors.Join(append(strict, err)...)
	}
	c.setDefaults()
	return c, errors.Join(strict...), nil
}

// The defaults, in one place. 241.0.0.0/8 is part of 240.0.0.0/4, which no network routes and no cluster
// uses: a ClusterSetIP never leaves the node.
func (c *Config) setDefaults() {
	def := func(s *string, v string) {
		if *s == "" {
			*s = v
		}
	}
	if c.Node == "" {
		c.Node, _ = os.Hostname()
	}
	def(&c.StateDir, "/var/lib/strait")
	def(&c.RunDir, "/run/strait")
	if len(c.ClusterSetCIDRs) == 0 {
		c.ClusterSetCIDRs = []string{"241.0.0.0/8"}
	}
	if k := c.Source.Kubernetes; k != nil {
		def(&k.Namespace, "strait-system")
		def(&k.ClusterSetIPs, "derived")
		def(&k.ImportSlices, "all")
		if k.DerivedPrefix == nil {
			k.DerivedPrefix = new(mcs.DerivedPrefix)
		}
	}
	def(&c.BPF.Pins, "/sys/fs/bpf/strait")
	def(&c.Gossip.Bind, "0.0.0.0:7946")
	def(&c.Gossip.KeyFile, "/etc/strait/gossip.key")
	def(&c.BPF.DestroyTCP, "never")
	def(&c.Mesh.Mode, "wireguard")
	def(&c.Mesh.Device, "strait0")
	def(&c.Mesh.Implementation, "auto")
	def(&c.Mesh.Tunnel, "own")
	if c.Mesh.Port == 0 {
		c.Mesh.Port = 51820
	}
	if c.Mesh.Table == 0 {
		c.Mesh.Table = 5354
	}
	def(&c.Metrics.Listen, "127.0.0.1:9964")
	def(&c.Log.Level, "info")
	def(&c.Log.Format, "text")
}

// Socket is the path of the API socket.
func (c Config) Socket() string { return filepath.Join(c.RunDir, "strait.sock") }
