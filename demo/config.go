package demo

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"

	"strait.io/strait/demo/lab"
	"strait.io/strait/install/examples"
)

// clustersetCIDR is the range of ClusterSetIPs in the demo.
const clustersetCIDR = "241.0.0.0/8"

// Ports of straitd, the same on every node.
const (
	gossipPort    = 7946
	wireguardPort = 51820
	metricsPort   = 9964
	dnsPort       = 53
)

// exampleCluster describes a cluster of the lab to package examples, which writes its YAML.
func exampleCluster(t lab.Topology, c lab.Cluster) examples.Cluster {
	out := examples.Cluster{
		Name:   c.Name,
		Region: c.Name + "-1",
		Index:  c.Index,
		Nodes:  len(c.Nodes),
		Far:    c.Index == len(t.Clusters),
	}
	for _, e := range examples.Serve(len(c.Nodes)) {
		if e.Name == c.Name {
			out.Region = e.Region
		}
	}
	return out
}

// setReady changes the readiness of the endpoint with the given address in the YAML of an
// EndpointSlice. It does so as a person would: it edits the first "ready:" line below the address.
func setReady(text string, addr netip.Addr, ready bool) (string, error) {
	lines := strings.SplitAfter(text, "\n")
	found := false
	for i, line := range lines {
		word := strings.TrimSpace(line)
		found = found || word == "- "+addr.String()
		if found && strings.HasPrefix(word, "ready:") {
			lines[i] = strings.Replace(line, word, fmt.Sprintf("ready: %t", ready), 1)
			return strings.Join(lines, ""), nil
		}
	}
	return "", fmt.Errorf("no endpoint %s with a line \"ready:\" in the YAML", addr)
}

// writeFile replaces a file atomically: a reader sees either the old text or the new.
func writeFile(path, text string, mode os.FileMode) error {
	tmp := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".tmp")
	if err := os.WriteFile(tmp, []byte(text), mode); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.Rename(tmp, path); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

func manifestDir(l *lab.Lab, cluster string) string {
	return filepath.Join(l.Dir, cluster, "manifests")
}

func configFile(l *lab.Lab, node string) string {
	return filepath.Join(l.NodeDir(node), "straitd.yaml")
}

func logFile(l *lab.Lab, node string) string { return filepath.Join(l.NodeDir(node), "straitd.log") }

func socketFile(l *lab.Lab, node string) string {
	return filepath.Join(l.NodeDir(node), "run", "strait.sock")
}

// writeInput writes everything that the daemons read to the lab's directory: YAML, keys and pins per
// cluster, a config per node, and the gossip key.
func writeInput(l *lab.Lab) error {
	for _, c := range l.Clusters {
		dir := manifestDir(l, c.Name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("make directory of cluster %s: %w", c.Name, err)
		}
		for name, text := range examples.Files(exampleCluster(l.Topology, c)) {
			if err := writeFile(filepath.Join(dir, name), text, 0o644); err != nil {
				return err
			}
		}
	}
	if err := writeKeys(l); err != nil {
		return err
	}
	for _, c := range l.Clusters {
		for _, n := range c.Nodes {
			text, err := yaml.Marshal(nodeConfig(l, n))
			if err != nil {
				return fmt.Errorf("encode config of node %s: %w", n.Name, err)
			}
			if err := writeFile(configFile(l, n.Name), string(text), 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// nodeConfig returns the straitd configuration of a node. See docs/configuration.md.
func nodeConfig(l *lab.Lab, n lab.Node) map[string]any {
	at := func(a netip.Addr, port uint16) string { return netip.AddrPortFrom(a, port).String() }
	var seeds []string
	for _, c := range l.Clusters {
		seeds = append(seeds, at(c.Nodes[0].Underlay.Addr(), gossipPort))
	}
	return map[string]any{
		"cluster":         n.Cluster,
		"node":            n.Name,
		"source":          map[string]any{"manifest": manifestDir(l, n.Cluster)},
		"stateDir":        filepath.Join(l.NodeDir(n.Name), "state"),
		"runDir":          filepath.Dir(socketFile(l, n.Name)),
		"clustersetCIDRs": []string{clustersetCIDR},
		"bpf": map[string]any{
			"pins":             l.Pins(n.Name),
			"cgroup":           l.Cgroup(n.Name),
			"allowVirtualRoot": true, // a node's cgroup is not the root of the machine's tree
			"maxFrontends":     4096,
			"maxBackends":      16384,
			"maxSockets":       16384,
		},
		"gossip": map[string]any{
			"bind":    at(n.Underlay.Addr(), gossipPort),
			"seeds":   seeds,
			"keyFile": gossipKeyFile(l),
		},
		"authority": map[string]any{"rootFile": rootFile(l, n.Cluster), "pinsFile": pinsFile(l, n.Cluster)},
		"mesh":      map[string]any{"mode": "wireguard", "device": n.Device, "port": wireguardPort, "peersFile": filepath.Join(l.NodeDir(n.Name), "peers.yaml")},
		"locality":  map[string]any{"ramp": "3s"}, // the default is longer than a demo should be
		"dns":       map[string]any{"listen": []string{at(n.Gateway, dnsPort)}},
		"metrics":   map[string]any{"listen": at(n.Underlay.Addr(), metricsPort)},
		"log":       map[string]any{"level": "info", "format": "text"},
	}
}
