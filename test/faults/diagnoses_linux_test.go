package faults

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/internal/problem"
)

// Titles of checks.
const (
	tunnelsCarry = "the tunnels carry packets"
	clustersHear = "every node hears every cluster"
	nodesAlive   = "every node of every cluster is alive"
	clocksAgree  = "the clocks agree"
	noneOfNodes  = "no problems with clusters and nodes"
	noneOfGossip = "no problems with gossip and replication"
)

var diagnoses = []fault{
	{
		name:   "UDP 51820 blocked one way",
		inject: func(w *ill) { w.nft(w.machines[1], closedIn) },
		seen:   map[int]problem.Code{1: problem.TunnelOneWay, 2: problem.TunnelSilent}, check: tunnelsCarry,
		says: "let UDP through", cure: func(w *ill, _ []string) { w.unblock(w.machines[1], "closed") },
	}, {
		name:   "UDP 51820 blocked both ways",
		inject: func(w *ill) { w.nft(w.machines[1], closed) },
		seen:   map[int]problem.Code{1: problem.TunnelSilent, 2: problem.TunnelSilent}, check: tunnelsCarry,
		says: "let UDP through", cure: func(w *ill, _ []string) { w.unblock(w.machines[1], "closed") },
	}, {
		name:   "MTU 1400 without ICMP",
		inject: func(w *ill) { w.narrow(w.machines[1], 1400) },
		seen:   map[int]problem.Code{1: problem.TunnelNarrow, 2: problem.TunnelNarrow}, check: tunnelsCarry,
		says: `set (mesh\.mtu) on all nodes to what the path between them takes, less (\d+), if that is (\d+) or more`,
		cure: func(w *ill, said []string) {
			for _, m := range w.machines {
				set(m.config, said[1], 1400-number(w.T, said[2]))
				w.restart(m)
			}
		},
	}, {
		name:   "MTU 1300 without ICMP",
		inject: func(w *ill) { w.narrow(w.machines[1], 1300) },
		seen:   map[int]problem.Code{1: problem.TunnelNarrow, 2: problem.TunnelNarrow}, check: tunnelsCarry,
		says: `less (\d+), if that is (\d+) or more; otherwise widen the path`,
		cure: func(w *ill, said []string) {
			if 1300-number(w.T, said[1]) >= number(w.T, said[2]) {
				w.Fatalf("mesh.mtu can be so small: %q", said)
			}
			w.unblock(w.machines[1], "narrow")
		},
	}, {
		name:   "a daemon is killed, which is the only seed",
		inject: func(w *ill) { w.lives[w.machines[0]].kill(w.T) },
		seen:   map[int]problem.Code{2: problem.ClusterQuiet}, check: clustersHear,
		says: "start straitd there", cure: func(w *ill, _ []string) { w.start(w.machines[0]) },
	}, {
		name: "a node is off", make: newPair,
		inject: func(w *ill) {
			w.lives[w.machines[1]].kill(w.T)
			w.cable(w.machines[1], "down")
		},
		seen: map[int]problem.Code{1: problem.NodeDead, 3: problem.NodeDead}, check: nodesAlive,
		says: "start the machine", cure: func(w *ill, _ []string) {
			w.cable(w.machines[1], "up")
			w.start(w.machines[1])
		},
	}, {
		name: "a cluster is cut one-sidedly",
		inject: func(w *ill) {
			w.nft(w.machines[1], `table inet cut { chain in { type filter hook input priority -300; ip saddr 172.31.9.0/24 drop; }; }`)
		},
		seen: map[int]problem.Code{1: problem.ClusterHeld, 2: problem.ClusterHeld}, check: clustersHear,
		says: "network between the clusters", cure: func(w *ill, _ []string) { w.unblock(w.machines[1], "cut") },
	}, {
		name: "a wrong pin",
		inject: func(w *ill) {
			w.repin(w.machines[0], func(pins authority.Pins) {
				p, another := pins["c2"], rootOf("another c2")
				p.Roots = []authority.PublicKey{another.Public()}
				pins["c2"] = p
			})
		},
		seen: map[int]problem.Code{1: problem.RootDiffers}, check: noneOfNodes,
		says: `pin that \(strait (clusterset accept)\)`, cure: func(w *ill, said []string) {
			w.strait(append(strings.Fields(said[1]), w.machines[1].path("pins.yaml"), "--dir", w.machines[0].dir, "--yes")...)
		},
	}, {
		name: "a wrong gossip key", make: newKeyed,
		inject: func(w *ill) { w.machines[1].newKey(w.T) },
		seen:   map[int]problem.Code{1: problem.GossipKeyDiffers, 2: problem.GossipKeyDiffers}, check: noneOfGossip,
		says: "put the same key file on every node", cure: func(w *ill, _ []string) {
			w.machines[1].write(w.T, "gossip.key", w.machines[0].read(w.T, "gossip.key"))
		},
	}, {
		name: "one cluster name twice", lingers: true, make: newLate,
		inject: func(w *ill) {
			m := w.machines[2]
			m.config["cluster"] = "c2"
			w.name(m, "n2")
			w.repin(m, func(pins authority.Pins) {
				p := pins["c3"]
				p.Cluster = "c2"
				pins["c2"] = p
				delete(pins, "c3")
			})
			w.start(m)
		},
		seen: map[int]problem.Code{1: problem.RootDiffers, 2: problem.RootDiffers, 3: problem.RootDiffers}, check: noneOfNodes,
		says: "if another cluster has the same name, give one of the two another", cure: func(w *ill, _ []string) {
			m := w.machines[2]
			w.lives[m].stop(w.T)
			m.config["cluster"] = "c3"
			m.write(w.T, "pins.yaml", w.machines[0].read(w.T, "pins.yaml"))
			w.start(m)
		},
	}, {
		name: "overlapping ranges of pods", make: newOpen,
		inject: func(w *ill) { w.announce(w.machines[2], "10.9.2.0/24") },
		seen:   map[int]problem.Code{1: problem.PrefixOverlap}, check: noneOfNodes,
		says: "give every cluster pod CIDRs of its own", cure: func(w *ill, _ []string) { w.announce(w.machines[2], "10.9.3.0/24") },
	}, {
		name: "pods in the range of ClusterSetIPs", make: newOpen,
		inject: func(w *ill) { w.announce(w.machines[2], "241.9.0.0/24") },
		seen:   map[int]problem.Code{1: problem.ClusterPrefixOverlap}, check: noneOfNodes,
		says: "outside clustersetCIDRs", cure: func(w *ill, _ []string) { w.announce(w.machines[2], "10.9.3.0/24") },
	}, {
		name: "a statement ended", lingers: true, make: newStated,
		inject: func(w *ill) {
			w.machines[1].write(w.T, "manifests/n2.yaml", node("n2", w.machines[2].addr()))
			for range 3 { // statements count for 24 hours
				w.passes(11 * time.Hour)
			}
		},
		seen: map[int]problem.Code{1: problem.StatementLate, 3: problem.StatementMissing}, check: noneOfNodes,
		says: `annotation (strait\.io/node-key).*(SHA256:\S+)`, cure: func(w *ill, said []string) {
			w.machines[1].write(w.T, "manifests/n2.yaml", annotated(node("n2", w.machines[2].addr()), said[1], said[2]))
		},
	}, {
		name: "the clock is an hour ahead", lingers: true, make: newClocked,
		inject: func(w *ill) { w.machines[1].clock.Set(time.Hour) },
		seen:   map[int]problem.Code{1: problem.ClocksDiffer, 2: problem.ClocksDiffer, 3: problem.ClocksDiffer}, check: clocksAgree,
		says: "correct this machine's clock", cure: func(w *ill, _ []string) { w.machines[1].clock.Set(0) },
	}, {
		name: "the clock is an hour behind", make: newClocked,
		inject: func(w *ill) { w.machines[1].clock.Set(-time.Hour) },
		seen:   map[int]problem.Code{1: problem.ClocksDiffer, 2: problem.ClocksDiffer, 3: problem.ClocksDiffer}, check: clocksAgree,
		says: "correct this machine's clock", cure: func(w *ill, _ []string) { w.machines[1].clock.Set(0) },
	}, {
		name: "a foreign hook", make: func(t *testing.T) *ill { return newIll(t, 1) },
		inject: (*ill).foreign,
		seen:   map[int]problem.Code{1: problem.HooksShared}, check: "no other program decides first",
		says: "turn it off", cure: func(w *ill, _ []string) { w.undo() },
	}, {
		name: "a map is full", make: func(t *testing.T) *ill { return newIll(t, 1) },
		inject: func(w *ill) {
			m := w.machines[0]
			var all strings.Builder
			for i := range 2 * m.config["bpf"].(tree)["maxFrontends"].(int) {
				all.WriteString(strings.ReplaceAll(service(fmt.Sprintf("more-%d", i)), "10.9.9.9", "10.9.1.9") + "---\n")
			}
			m.write(w.T, "manifests/more.yaml", all.String())
		},
		seen: map[int]problem.Code{1: problem.MapFull}, check: "the kernel's maps have room",
		says: `raise (bpf\.max\w+), and run straitd cleanup between the daemon's stop and start`, cure: func(w *ill, said []string) {
			m := w.machines[0]
			w.restart(m)
			w.lives[m].isReady(w.T) // also where the maps are full
			set(m.config, said[1], 1024)
			w.lives[m].stop(w.T)
			m.cleanUp(w.T)
			w.start(m)
		},
	}, {
		name: "no backend",
		inject: func(w *ill) {
			for _, m := range w.machines {
				w.edit(m, "manifests/serve.yaml", "nodeName: n1", "conditions: {ready: false}, nodeName: n1")
			}
		},
		seen: map[int]problem.Code{1: problem.ServiceUnserved, 2: problem.ServiceUnserved}, check: "every Service has something behind it",
		says: "start pods of it in one of the clusters", cure: func(w *ill, _ []string) {
			w.edit(w.machines[1], "manifests/serve.yaml", "ready: false", "ready: true")
		},
	}, {
		name: "the metrics' port is taken", make: func(t *testing.T) *ill { return newIll(t, 1) },
		inject: func(w *ill) {
			m := w.machines[0]
			w.lives[m].stop(w.T)
			w.undo = m.occupy(w.T, "tcp", m.config["metrics"].(tree)["listen"].(string))
			w.looks[m].socket = true
			w.start(m)
		},
		seen: map[int]problem.Code{1: problem.MetricsNotServed}, check: "no problems with the daemons",
		says: `find its owner \((ss -ltnp '(sport = :\d+)')\) and stop it`, cure: func(w *ill, said []string) {
			m := w.machines[0]
			text, err := command(m.ns, "", "ss", "-ltnp", said[2])
			must(w.T, err)
			if !strings.Contains(text, fmt.Sprintf("pid=%d,", os.Getpid())) {
				w.Fatalf("%s does not show who has the port:\n%s", said[1], text)
			}
			w.undo()
			w.looks[m].socket = false
		},
	},
}
