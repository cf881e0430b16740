package daemon_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"strait.io/strait/daemon"
)

const minimal = `
cluster: us-east
node: us-east-1
source: {manifest: /etc/strait/manifests}
gossip: {keyFile: /etc/strait/gossip.key}
`

func TestConfigDefaults(t *testing.T) {
	c, err := daemon.ParseConfig([]byte(minimal), noFlags)
	if err != nil {
		t.Fatalf("the minimal config is not valid: %v", err)
	}
	if got := fmt.Sprintln(c.ClusterSetCIDRs, c.Mesh.Port, c.Gossip.Bind, c.Metrics.Listen, c.Log.Level, c.Socket()); got !=
		"[241.0.0.0/8] 51820 0.0.0.0:7946 {false 127.0.0.1:9964} INFO /run/strait/strait.sock\n" {
		t.Errorf("defaults %s", got)
	}
}

// TestLocalityPage: the page's configuration is one that the daemon takes.
func TestLocalityPage(t *testing.T) {
	text, err := os.ReadFile("../docs/locality.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, found := strings.Cut(string(text), "```ini\n")
	block, _, _ = strings.Cut(block, "```")
	c, err := daemon.ParseConfig([]byte(minimal+block), noFlags)
	if err != nil || !found {
		t.Fatalf("%v in %q", err, block)
	}
	if l := c.Locality; l.Spill != daemon.SpillOn || len(l.Tiers) != 3 || l.Costs["us-east"]["eu-central"] != 9 {
		t.Errorf("%+v", l)
	}
}

func noFlags(*daemon.Config) error { return nil }

// Every mistake is named at once, each by the path of its field.
func TestConfigMistakes(t *testing.T) {
	for _, tc := range []struct {
		name, yaml string
		want       []string
	}{
		{"unknown fields, at any depth", minimal + "mehs: {}\nmesh: {modee: off, mtu: 7}\n", []string{`"mehs"`, `"mesh.modee"`, "mesh.mtu"}},
		{"wrong types, and what lies behind them", minimal + "mesh: {port: many, table: -1, mtu: 1.5}\nbpf: {maxSockets: 5000000000, allowVirtualRoot: 1, cgroup: 7}\nnodePrefixes: 5\nlog: text\ndns: {listen: [5, '', null, {}]}\n",
			[]string{`mesh.port: "many" is not a whole number from 0 to 65535`, "mesh.table: -1", "mesh.mtu: 1.5 is not a whole number",
				"bpf.maxSockets: 5000000000 is not", "bpf.allowVirtualRoot: 1 is not true or false", "bpf.cgroup: 7 is not a string",
				"nodePrefixes: 5 is not a list", `log: "text" is not a mapping of fields`, `dns.listen[0]: "5" is not an address and port`,
				"dns.listen[1]: is empty", "dns.listen[2]: is empty", "dns.listen[3]:"}},
		{"a field given twice", minimal + "node: n2\n", []string{`"node" already set`}},
		{"no mapping", "straitd", []string{`"straitd" is not a mapping`}},
		{"off without quotes", minimal + "mesh: {mode: off}\nmetrics: {listen: off}\nauthority: {mode: off}\n", nil},
		{"authority that is off and on", minimal + "authority: {mode: off, pinsFile: /p}\n", []string{"authority.mode: is off"}},
		{"authority, a word that means nothing", minimal + "authority: {mode: none}\n", []string{"authority.mode"}},
		{"whom to trust, set twice", minimal + "authority: {pinsFile: /p, rootFile: /r, believe: all, believeFile: /b}\n", []string{"authority.believeFile: says the same"}},
		{"whom to believe, without pins", minimal + "authority: {rootFile: /r, believeFile: /b}\n", []string{"authority.believeFile: is only for machines with authority.pinsFile"}},
		{"members without an own pin", minimal + "authority: {rootFile: /r, membersDir: /m}\n", []string{"authority.membersDir: is only for machines with authority.pinsFile"}},
		{"members of a relative path", minimal + "authority: {rootFile: /r, pinsFile: /p, membersDir: m}\n", []string{`authority.membersDir: "m" is not an absolute path`}},
		{"a root that no leader has", minimal + "authority: {rootFile: /r, pinsFile: /p, publish: x}\n", []string{"authority.publish: needs source.kubernetes.leaderDir"}},
		{"keys without a leader to make them", minimal + "authority: {pinsFile: /p, rootFile: /r, believeFile: /b, make: {secret: s}}\n", []string{"authority.make: needs source.kubernetes.leaderDir"}},
		{"a name that falls through to itself", minimal + "dns: {listen: ['127.0.0.1:53'], fallThrough: clusterset.local}\n",
			[]string{`dns.fallThrough: "clusterset.local" is not the cluster's own zone`}},
		{"a zone above the clusterset's", minimal + "dns: {listen: ['127.0.0.1:53'], fallThrough: local}\n",
			[]string{`dns.fallThrough: "local" is not the cluster's own zone`}},
		{"a zone below the clusterset's", minimal + "dns: {listen: ['127.0.0.1:53'], fallThrough: a.clusterset.local}\n",
			[]string{`dns.fallThrough: "a.clusterset.local" is not the cluster's own zone`}},
		{"no zone", minimal + "dns: {listen: ['127.0.0.1:53'], fallThrough: a_b}\n", []string{`dns.fallThrough: "a_b": `}},
		{"a probe of a DNS of no API server's cluster", minimal + "dns: {probe: off}\n", []string{"dns.probe: is only for clusters with an API server"}},
		{"a probe without a port", "cluster: c1\nsource: {kubernetes: {}}\ngossip: {keyFile: /k}\ndns: {probe: '10.96.0.10:0'}\n", []string{"dns.probe: 10.96.0.10 needs a port"}},
		{"no probe", "cluster: c1\nsource: {kubernetes: {}}\ngossip: {keyFile: /k}\ndns: {probe: off}\n", nil},
		{"names that fall through to no server", minimal + "dns: {fallThrough: cluster.local}\n", []string{"dns.fallThrough: needs dns.listen"}},
		{"an open resolver", minimal + "dns: {listen: ['127.0.0.1:53', '0.0.0.0:53', '[::]:53'], upstreams: ['10.0.0.1:53']}\n",
			[]string{"dns.listen[1]: 0.0.0.0:53 is every address of this machine", "dns.listen[2]: [::]:53 is every address"}},
		{"an open resolver at one address", minimal + "dns: {listen: ['8.8.4.4:53', '[2001:4860::1]:53', '[::ffff:8.8.4.4]:53', '10.0.0.2:53', '100.64.0.1:53', '169.254.20.10:53', '[fd00::1]:53'], upstreams: ['10.0.0.1:53']}\n",
			[]string{"dns.listen[0]: 8.8.4.4:53 is a public address", "dns.listen[1]: [2001:4860::1]:53 is a public address", "dns.listen[2]: [::ffff:8.8.4.4]:53 is a public address"}},
		{"a public address, for clusterset.local alone", minimal + "dns: {listen: ['8.8.4.4:53']}\n", nil},
		{"every address, for clusterset.local alone", minimal + "dns: {listen: ['0.0.0.0:53']}\n", nil},
		{"off where it is not allowed", minimal + "mesh: {tunnel: off}\nlog: {format: on}\n",
			[]string{`mesh.tunnel: "off" is none of own, external`, `log.format: "on" is none of text, json`}},
		{"no YAML", "cluster: [", []string{"line 1"}},
		{"several at once", `
cluster: Not_A_Label
node: us-east-1
source: {}
stateDir: state
clustersetCIDRs: [241.0.0.1/8, 10.0.0.0/8, nonsense, fd00::/127]
nodePrefixes: [10.0.0.1/8]
gossip: {bind: "7946", seeds: [host], seedsFile: seeds, keyFile: k, relay: maybe}
mesh: {mode: maybe, device: a-name-that-is-too-long, mtu: 100, implementation: fast, table: 254}
dns: {listen: ["53", "169.254.169.254:53", "[fd00:ec2::254]:53"], upstreams: [nowhere]}
metrics: {listen: here}
bpf: {pins: pins, cgroup: c, maxFrontends: 4194305, maxBackends: 16777216, maxSockets: 1000, maxAffinity: 16777217, maxOptOuts: 1048577}
log: {level: loud, format: xml}
`, []string{"cluster:", "source:", "stateDir:", "clustersetCIDRs[0]:", "clustersetCIDRs[1]:", "clustersetCIDRs[2]:",
			"clustersetCIDRs[3]:", "gossip.bind:", "gossip.seeds[0]:", "gossip.seedsFile:", "gossip.relay:", "nodePrefixes[0]:", "mesh.mode:", "mesh.device:", "mesh.mtu:", "mesh.implementation:",
			"mesh.table:", "dns.listen[0]:", "dns.listen[1]: 169.254.169.254 is in 169.254.169.0/24", "dns.listen[2]:", "dns.upstreams[0]:", "metrics.listen:",
			`bpf.pins: "pins" is not an absolute path`, `bpf.cgroup: "c" is not`, "bpf.maxFrontends: 4194305 is more than 4194304",
			"bpf.maxBackends: 16777216 is more than 16777215", "bpf.maxSockets: 1000 is not a power of two",
			"bpf.maxAffinity: 16777217 is more than 16777216", "bpf.maxOptOuts: 1048577 is more than 1048576", "log.level:", "log.format:"}},
		{"a Kubernetes source and another", `
node: n1
source: {manifest: /etc/strait/manifests, kubernetes: {namespace: Not_One, clusterSetIPs: some, derivedPrefix: "1-", importSlices: few, barredNamespaces: ["[", "", "[c-a]"], acceptConfigFrom: [c1, C2, c1]}}
gossip: {keyFile: k}
`, []string{"source: has both", "source.kubernetes.namespace:", "source.kubernetes.clusterSetIPs:", `source.kubernetes.derivedPrefix: "1-" cannot begin`, "source.kubernetes.importSlices:",
			`source.kubernetes.acceptConfigFrom[1]: "C2"`, "source.kubernetes.acceptConfigFrom[2]: c1 is listed twice",
			"source.kubernetes.barredNamespaces[0]:", "source.kubernetes.barredNamespaces[1]:",
			`source.kubernetes.barredNamespaces[2]: namespace pattern "[c-a]": the range c-a is empty: write a-c`}},
		{"a time without a unit", minimal + "bpf: {unreadyGrace: 10}\n", []string{`bpf.unreadyGrace: "10" is not a time with a unit, as in 10s`}},
		{"a negative time", minimal + "bpf: {unreadyGrace: -1s}\n", []string{"bpf.unreadyGrace: -1s is negative"}},
		{"no sockets are closed, but TCP", minimal + "bpf: {destroySockets: false, destroyTCP: gone}\n", []string{"bpf.destroyTCP: gone needs bpf.destroySockets"}},
		{"where connections go", minimal + "locality: {spill: maybe}\n", []string{"locality.spill:"}},
		{"where connections go, out of range", minimal + "locality: {factor: 0.5, ramp: 2h, tiers: [region, zone, planet], prefer: [a, '']}\n",
			[]string{"locality.factor: 0.5", "locality.ramp: 2h", `locality.tiers[1]: "zone"`, `locality.tiers[2]: "planet"`, "locality.prefer[1]:"}},
		{"policies", minimal + `replication:
- metadata: {name: shop}
  spec: {from: [a], to: ["*"], select: [{namespaces: [shop], labels: {matchLabels: {app: x}, matchExpressions: [{key: a, operator: Exists}]}}], as: join}
`, nil},
		{"policies with mistakes", minimal + `replication:
- metadata: {name: shop}
  spec: {from: [A], to: [b], select: [{}], form: x}
- {kind: Policy, metadata: {name: shop}, spec: {from: [a], to: [b], select: [{names: ["("]}], as: copy}}
`, []string{`unknown field "replication[0].spec.form"`, "replication[0].spec.from[0]: Invalid value", "replication[0].spec.select[0]: Required value",
			"replication[1].kind:", "replication[1].spec.select[0].names[0]:", "replication[1].spec.as:", `replication[1].metadata.name: "shop" is the name of replication[0] too`}},
		{"a machine without the root", minimal + "authority: {pinsFile: /etc/strait/pins.yaml}\n", nil},
		{"a token without an API server", minimal + "authority: {pinsFile: /etc/strait/pins.yaml, tokenFile: /t}\n", []string{"authority.tokenFile: is only for"}},
		{"a node without the root and a token", "node: n1\nsource: {kubernetes: {}}\ngossip: {keyFile: k}\nauthority: {pinsFile: /p}\n", []string{"authority.tokenFile: is required"}},
		{"a node without the root", "node: n1\nsource: {kubernetes: {}}\ngossip: {keyFile: k}\nauthority: {pinsFile: /p, tokenFile: /t}\n", nil},
		{"a token beside the root", "node: n1\nsource: {kubernetes: {}}\ngossip: {keyFile: k}\nauthority: {rootFile: /r, pinsFile: /p, tokenFile: t}\n",
			[]string{"authority.tokenFile: is only for", `authority.tokenFile: "t" is not an absolute path`}},
		{"the root is lent", "node: n1\nsource: {kubernetes: {leaderDir: /l}}\ngossip: {keyFile: k}\nauthority: {pinsFile: /p, tokenFile: /t, believe: all}\n", nil},
		{"the root is lent and configured", "node: n1\nsource: {kubernetes: {leaderDir: l}}\ngossip: {keyFile: k}\nauthority: {rootFile: /r}\n",
			[]string{"authority.rootFile: is not used", `source.kubernetes.leaderDir: "l" is not an absolute path`}},
		{"the root is lent and no pins say who signs", "node: n1\nsource: {kubernetes: {leaderDir: /l}}\ngossip: {keyFile: k}\nauthority: {tokenFile: /t}\n",
			[]string{"authority.pinsFile: is required"}},
		{"no pins to believe", minimal + "authority: {rootFile: /r, believe: all}\n", []string{"authority.believe: is only for"}},
		{"a word for whose counts", minimal + "authority: {pinsFile: /p, believe: some}\n", []string{`authority.believe: "some" is none of pinned, all`}},
		{"a group of views", minimal + "viewGroup: 65532\n", nil},
		{"no group of views", minimal + "viewGroup: -1\n", []string{"viewGroup: -1 is not the ID of a group"}},
		{"no time", minimal + "bpf: {unreadyGrace: 0s}\n", nil},
		{"an empty Kubernetes source is enough", "node: n1\nsource: {kubernetes: {}}\ngossip: {keyFile: k}\n", nil},
		{"an empty prefix is one", "node: n1\nsource: {kubernetes: {derivedPrefix: ''}}\ngossip: {keyFile: k}\n", nil},
		{"null is none", "cluster: c\nnode: n1\nsource: {kubernetes: }\ngossip: {keyFile: k}\n", []string{"source: is required"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "strait.yaml")
			if err := os.WriteFile(file, []byte(tc.yaml), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := daemon.ReadConfig(file, noFlags)
			wantAll(t, err, tc.want)
		})
	}
}

func wantAll(t *testing.T, err error, want []string) {
	t.Helper()
	if (err != nil) != (len(want) > 0) {
		t.Fatalf("error %v, want %q in it", err, want)
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("no %q in:\n%v", w, err)
		}
	}
}

func TestCheckReportsManifests(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "bad.yaml"), []byte("apiVersion: v1\nkind: Service\nmetadata: {name: x}\nspec: {prots: []}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := daemon.ParseConfig([]byte(minimal), noFlags)
	if err != nil {
		t.Fatal(err)
	}
	c.Source.Manifest = dir
	var out strings.Builder
	if err := daemon.Check(t.Context(), &out, "strait.yaml", c); err == nil {
		t.Error("a bad manifest passes the check")
	}
	for _, w := range []string{"bad.yaml", "default/x", "spec.prots", "gossip.keyFile"} {
		if !strings.Contains(out.String(), w) {
			t.Errorf("no %q in %q", w, out.String())
		}
	}
}

func FuzzParseConfig(f *testing.F) {
	f.Add([]byte(minimal))
	f.Add([]byte("clustersetCIDRs: [fd00::/64]\ngossip: {bind: '[::]:1'}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := daemon.ParseConfig(data, noFlags) // must not panic
		if err == nil && c.Validate() != nil {
			t.Errorf("a config without mistakes is not valid: %v", c.Validate())
		}
	})
}

// What is written down as YAML reads back as the same.
func TestConfigRoundTrip(t *testing.T) {
	for _, text := range []string{minimal, `
cluster: c
node: n1
source: {kubernetes: {clusterSetIPs: cidr, importSlices: headless, derivedPrefix: ''}}
clustersetCIDRs: [241.0.0.0/16, "fd00:5354::/64"]
nodePrefixes: [10.1.2.0/24]
gossip: {bind: "[::]:7000", advertise: "192.0.2.1:7000", seeds: ["a:1"]}
mesh: {mode: off, implementation: kernel, tunnel: external, port: 5, table: 6}
dns: {listen: ["169.254.20.11:53"], upstreams: ["10.0.0.1:53"]}
metrics: {listen: off}
log: {level: debug, format: json}
bpf: {destroyTCP: gone, unreadyGrace: 1m30s}
locality: {spill: off, factor: 2, ramp: 0s, tiers: [zone, clusterset], prefer: [a, b], costs: {a: {b: 2, c: 9}}}
`, `
cluster: c1
node: n1
source: {manifest: /m}
bpf: {destroySockets: false}
authority: {mode: off}
`} {
		before, err := daemon.ParseConfig([]byte(text), noFlags)
		if err != nil {
			t.Fatal(err)
		}
		b, err := yaml.Marshal(before)
		if err != nil {
			t.Fatal(err)
		}
		after, err := daemon.ParseConfig(b, noFlags)
		if err != nil || !reflect.DeepEqual(before, after) {
			t.Errorf("%v; read back from\n%s%+v, was %+v", err, b, after, before)
		}
	}
}

// A flag's mistake is reported among the others.
func TestConfigOverride(t *testing.T) {
	_, err := daemon.ParseConfig([]byte("mesh: {mtu: 7}"), func(c *daemon.Config) error {
		c.Cluster = "from-a-flag"
		return errors.New("--log-level: loud")
	})
	wantAll(t, err, []string{"mesh.mtu", "--log-level: loud", "source: is required"})
	if strings.Contains(err.Error(), "cluster:") {
		t.Errorf("the flag did not name the cluster: %v", err)
	}
}
