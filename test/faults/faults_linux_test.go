// Package faults starts the real straitd with bad input and in bad surroundings, and checks that each
// fault gets one clear line that says what, where and what to do, and that the rest goes on working.
package faults

import (
	"strings"
	"testing"
	"time"
)

// Each case starts one daemon in a namespace of its own. What it says is looked for in its log; where
// it can go on, it must still answer on its API.
func TestFaults(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		// prepare changes the config (a YAML tree) and the directory before the start.
		prepare func(t *testing.T, m *machine)
		want    []string // in one line
		dies    bool
	}{
		{"missing bpffs", func(_ *testing.T, m *machine) { m.config["bpf"].(tree)["pins"] = m.path("no-bpffs/strait") },
			[]string{"bpffs", "mount -t bpf"}, false},
		{"no cgroup v2", func(_ *testing.T, m *machine) { m.config["bpf"].(tree)["cgroup"] = m.path("") },
			[]string{"cgroup", "v2"}, false},
		{"gossip port in use", func(t *testing.T, m *machine) { m.occupy(t, "tcp", "127.0.0.1:7946") },
			[]string{"127.0.0.1:7946", "in use"}, true},
		{"DNS port in use", func(t *testing.T, m *machine) {
			m.config["dns"] = tree{"listen": []string{"127.0.0.1:5300"}}
			m.occupy(t, "udp", "127.0.0.1:5300")
		}, []string{"127.0.0.1:5300", "in use"}, false},
		{"metrics port in use", func(t *testing.T, m *machine) { m.occupy(t, "tcp", "127.0.0.1:9964") },
			[]string{"127.0.0.1:9964", "in use"}, false},
		{"no Node object", func(_ *testing.T, m *machine) { m.config["node"] = "stranger" },
			[]string{"Node stranger", "no Node object", "add the object"}, false},
		{"unknown field in a manifest", func(t *testing.T, m *machine) {
			m.write(t, "manifests/bad.yaml", "apiVersion: v1\nkind: Service\nmetadata: {name: typo}\nspec: {prots: []}\n")
		}, []string{"bad.yaml", "Service default/typo", "spec.prots"}, false},
		{"a Service without ports", func(t *testing.T, m *machine) {
			m.write(t, "manifests/bad.yaml", "apiVersion: v1\nkind: Service\nmetadata: {name: empty}\n---\n"+
				"apiVersion: multicluster.x-k8s.io/v1beta1\nkind: ServiceExport\nmetadata: {name: empty}\n")
		}, []string{"Service default/empty", "spec.ports", "no ports"}, false},
		{"IPv6 frontend with IPv4 backends only", func(_ *testing.T, m *machine) {
			m.config["clustersetCIDRs"] = []string{"241.0.0.0/8", "fd00:5354::/64"}
		}, []string{"ServiceImport default/serve", "IPv6", "all 1 endpoints are of the other family"}, false},
		{"colliding ClusterSetIPs", func(t *testing.T, m *machine) {
			m.config["clustersetCIDRs"] = []string{"241.0.0.0/30"} // two addresses
			for _, name := range []string{"one", "two"} {
				m.write(t, "manifests/"+name+".yaml", service(name))
			}
		}, []string{"ServiceImport default/", "no ClusterSetIP is free", "larger clustersetCIDR"}, false},
		{"a corrupt state file", func(t *testing.T, m *machine) { m.write(t, "state/replica.cbor", "garbage") },
			[]string{"replica.cbor", "cannot be read", "kept as"}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			tc.prepare(t, m)
			p := m.start(t)
			p.says(t, tc.want...)
			if tc.dies {
				p.dies(t)
				return
			}
			p.answers(t)
		})
	}
}

// Two daemons of one run directory: the second is refused by name of the first, which goes on.
func TestSecondDaemonIsRefused(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	first := m.start(t)
	first.answers(t)
	second := m.start(t)
	second.says(t, "another straitd", "pid")
	second.dies(t)
	first.answers(t)
}

// A daemon with another gossip key is kept out, and both sides say so.
func TestWrongGossipKey(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	first := m.start(t)
	first.answers(t)
	other := m.another(t, "n2", 2)
	other.newKey(t)
	second := other.start(t)
	second.says(t, "gossip key differs", "same key file")
	first.says(t, "gossip key differs")
	second.answers(t)
}

// kill -9 in the middle of everything, many times, at random moments: the next life answers each time,
// and what the kernel holds is never lost.
func TestKillStorm(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	p := m.start(t)
	p.answers(t)
	m.eventuallyHolds(t, "241.5.251.216:80/TCP")
	for i := range 10 {
		p.kill(t)
		m.holds(t, "241.5.251.216:80/TCP")
		p = m.start(t)
		time.Sleep(time.Duration(i*17) * time.Millisecond)
	}
	p.answers(t)
	m.holds(t, "241.5.251.216:80/TCP")
}

// A YAML file that breaks while the daemon runs keeps its last good version in force; mended, the new one
// counts.
func TestBrokenFileKeepsLastGoodVersion(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	p := m.start(t)
	p.answers(t)
	m.eventuallyHolds(t, "241.5.251.216:80/TCP")
	m.write(t, "manifests/serve.yaml", "kind: [\n")
	p.says(t, "serve.yaml", "last good version")
	m.holds(t, "241.5.251.216:80/TCP")
	m.write(t, "manifests/serve.yaml", strings.ReplaceAll(service("serve"), "port: 80", "port: 81"))
	m.eventuallyHolds(t, "241.5.251.216:81/TCP")
}
