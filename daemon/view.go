package daemon

import (
	"fmt"
	"slices"
	"time"

	"strait.io/strait/daemon/api"
	"strait.io/strait/internal/problem"
)

// Ready answers probes. It reads only what the last turn wrote down: asking the kernel, or waiting
// for anything, could make the kubelet kill a daemon that works.
func (d *Daemon) Ready() api.Readiness {
	m := d.now()
	if m == nil {
		return api.Readiness{}
	}
	return api.Readiness{Planned: true, Ready: m.ready(), Waiting: m.waiting}
}

// ready reports whether a plan has been applied, which happens only once the hooks are attached.
func (m *moment) ready() bool { return !m.applied.IsZero() }

// Status sums up the latest moment, and what the kernel holds now; nil before the first moment.
func (d *Daemon) Status() *api.Status {
	m := d.now()
	if m == nil {
		return nil
	}
	v := d.viewer(m)
	v.heard, v.rtts = d.gossip.Heard(), d.gossip.RTTs()
	v.health, _ = d.kernel.health()
	datapath, unreadable := d.kernel.summary()
	status := &api.Status{
		Cluster: string(d.self().Cluster), Node: d.config.Node, Version: d.build.Version,
		Time: time.Now(), Applied: m.applied, Ready: m.ready() && datapath.Attached,
		Waiting: m.waiting, Leader: d.gossip.Leader(),
		Clusters: v.clusters(), Origins: m.state.Records.Len(), Datapath: datapath, Refused: d.gossip.Refused(),
		Authority: d.trustMode(),
	}
	if s, is := d.gossip.Trust().Statements[v.self.Origin()]; is {
		status.StatementEnds = time.Unix(s.NotAfter, 0)
	}
	if err := v.countOpen(status.Clusters, d.kernel.records); err != nil {
		unreadable = append(unreadable, problem.Problem{Code: problem.MapsUnreadable, Object: "socklb", Message: "count open connections: " + err.Error()})
	}
	problems := slices.Concat(m.problems, d.gossip.Problems(), unreadable)
	problems = append(problems, d.kube.report(status)...)
	if len(d.config.DNS.Listen) > 0 {
		problems = append(problems, d.dns.Problems()...)
	}
	status.Problems = problem.Sort(slices.Concat(problems, d.history.Problems(), d.api.Problems()))
	return status
}

// Services returns where new connections to each service go, and why.
func (d *Daemon) Services() *api.ServiceList {
	m := d.now()
	if m == nil {
		return nil
	}
	v := d.viewer(m)
	v.counted, v.rtts = d.kernel.counted(), d.gossip.RTTs()
	return api.NewServiceList(d.viewpoint(m), v.services())
}

// Nodes lists the machines of the clusterset with the tunnels to them.
func (d *Daemon) Nodes() *api.NodeList {
	m := d.now()
	if m == nil {
		return nil
	}
	v := d.viewer(m)
	v.heard, v.peers = d.gossip.Heard(), d.kernel.tunnels()
	v.health, _ = d.kernel.health()
	return api.NewNodeList(d.viewpoint(m), v.nodes())
}

// maxMeshNodes bounds the nodes whose tunnels are listed all at once: in a full mesh, 500 nodes
// have up to 250,000 tunnels.
const maxMeshNodes = 500

// Tunnels lists the tunnels of a node, or of all; nil before the first moment.
func (d *Daemon) Tunnels(of string) (*api.TunnelList, error) {
	m := d.now()
	if m == nil {
		return nil, nil
	}
	if n := len(m.result.Mesh.Ends); of == "" && n > maxMeshNodes {
		return nil, &problem.Refusal{
			Message: fmt.Sprintf("the clusterset has %d nodes, and the tunnels of all are listed for up to %d", n, maxMeshNodes),
			Try:     "list those of one node: strait peer showconf node CLUSTER/NODE, or strait nodes for this one's",
		}
	}
	return api.NewTunnelList(d.viewpoint(m), d.viewer(m).tunnels(of)), nil
}

// Members counts the nodes by state, for a scrape.
func (d *Daemon) Members() map[string]int {
	m := d.now()
	if m == nil {
		return nil
	}
	return d.viewer(m).members()
}

// Logs returns the last lines of the daemon's log. It has an answer before the first plan: that is when it
// is needed most.
func (d *Daemon) Logs() *api.LogList {
	lines, dropped := d.lines.Lines()
	from := api.Viewpoint{Cluster: d.config.Cluster, Node: d.config.Node, Time: time.Now()}
	if m := d.now(); m != nil {
		from = d.viewpoint(m)
	}
	return api.NewLogList(from, lines, dropped)
}

// Writes counts what was written to the API server, for a scrape.
func (d *Daemon) Writes() []api.Written { return d.kube.written() }

// Gossiped counts what gossip sent and received, for a scrape.
func (d *Daemon) Gossiped() (out []api.Gossiped) {
	for _, b := range d.gossip.Bytes() {
		out = append(out, api.Gossiped(b))
	}
	return out
}

// Traffic calls each with what the kernel counted, for a scrape.
func (d *Daemon) Traffic(each func(api.Traffic)) {
	m := d.now()
	if m == nil {
		return
	}
	v := d.viewer(m)
	v.counted = d.kernel.counts()
	v.traffic(each)
}

func (d *Daemon) viewer(m *moment) viewer { return viewer{moment: m, self: d.self()} }

func (d *Daemon) viewpoint(m *moment) api.Viewpoint {
	return api.Viewpoint{Cluster: string(d.self().Cluster), Node: d.config.Node, Clusters: len(m.state.Clusters()), Time: time.Now()}
}
