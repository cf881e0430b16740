package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"strait.io/strait/cli"
	"strait.io/strait/cli/check"
	"strait.io/strait/daemon/api"
	"strait.io/strait/install/chart"
	"strait.io/strait/install/cluster"
	"strait.io/strait/install/corefile"
	"strait.io/strait/install/preflight"
	"strait.io/strait/install/trust"
	"strait.io/strait/internal/coredns"
)

const (
	preflightNamespace = "strait-preflight"
	preflightLabel     = "strait.io/preflight"
	// startTime is how long the image may take to start on all nodes.
	startTime = time.Minute
	// mostTargets is to how many nodes of each cluster a node sends.
	mostTargets = 8
	// serveTime is how long nodes answer probes at the most, dialTime how long sending them may take,
	// and endTime how long it may take until the answering has ended.
	serveTime = 5 * time.Minute
	dialTime  = 2 * time.Minute
	endTime   = 5 * time.Second
)

// beforeSite is a cluster in which strait is not installed yet.
type beforeSite struct {
	cluster.Trial
	values chart.Values
	check.Site
	pods []cluster.TrialPod
}

// CheckBefore finds out what clusters have of what strait needs, before it is installed: it runs the image
// on each node for a short time, has the nodes send to each other, and removes it.
func CheckBefore(ctx context.Context, a *cli.App, o cli.Before) ([]check.Site, error) {
	var sites []*beforeSite
	for _, name := range a.From.Each() {
		c, err := cluster.Open(cluster.Options{Kubeconfig: a.From.Kubeconfig, Context: name, Namespace: a.From.Namespace, Login: a.From.Login})
		if err != nil {
			return nil, cli.Exit(cli.ExitUsage, err)
		}
		f := installFlags{image: o.Image, set: o.Set, values: o.Values}
		values, err := f.read()
		if err != nil {
			return nil, cli.Exit(cli.ExitUsage, err)
		}
		trial := cluster.Trial{Cluster: c, Name: preflightNamespace, Label: preflightLabel, Elsewhere: "rename it or delete it: the check needs this name"}
		sites = append(sites, &beforeSite{Trial: trial, values: values, Site: check.Site{Context: c.Context}})
	}
	err := lookBefore(ctx, a, sites)
	out := make([]check.Site, len(sites))
	for i, s := range sites {
		out[i] = s.Site
	}
	return out, err
}

func lookBefore(ctx context.Context, a *cli.App, sites []*beforeSite) (err error) {
	if err := clearBefore(ctx, sites); err != nil { // what an earlier check left
		return unknown(err)
	}
	defer func() { err = errors.Join(err, clearBefore(ctx, sites)) }()
	a.Hint("running the image on each node for a moment, in namespace %s", preflightNamespace)
	if err := together(sites, func(s *beforeSite) error { return s.look(ctx, a) }); err != nil {
		return unknown(err)
	}
	return unknown(sendAll(ctx, sites))
}

func clearBefore(ctx context.Context, sites []*beforeSite) error {
	ctx, cancel := clearing(ctx)
	defer cancel()
	return together(sites, func(s *beforeSite) error {
		_, err := s.Clear(ctx)
		return err
	})
}

// Context is the name of the cluster's context.
func (s *beforeSite) Context() string { return s.Site.Context }

// look finds out what one cluster and each of its nodes have.
func (s *beforeSite) look(ctx context.Context, a *cli.App) error {
	apis, err := s.APIs()
	if err != nil {
		return err
	}
	docs, err := chart.Render(chart.Options{Namespace: s.Namespace, Version: a.ThisVersion().Version, APIs: apis, Values: chart.Merge(s.values, chart.Values{"createNamespace": true})})
	if err != nil {
		return cli.Exit(cli.ExitUsage, err)
	}
	if s.Denied, err = s.MayNotCreate(ctx, docs); err != nil {
		return err
	}
	if err := s.read(ctx); err != nil {
		return err
	}
	made, err := preflightObjects(docs)
	if err != nil {
		return err
	}
	if err := s.Make(ctx, made); err != nil {
		return fmt.Errorf("context %s: %w", s.Context(), err)
	}
	if s.pods, s.Missing, err = s.WaitEach(ctx, preflightNamespace, startTime); err != nil {
		return err
	}
	var lock sync.Mutex
	var wg sync.WaitGroup
	for _, p := range s.pods {
		wg.Go(func() {
			var facts api.NodeFacts
			err := s.run(ctx, p, nil, &facts)
			lock.Lock()
			defer lock.Unlock()
			if err != nil {
				s.Missing[p.Node] = err.Error()
				return
			}
			facts.Node = p.Node
			s.Machines = append(s.Machines, facts)
		})
	}
	wg.Wait()
	return ctx.Err()
}

// read reads what the API server knows. What may not be read is a finding, and no error.
func (s *beforeSite) read(ctx context.Context) (err error) {
	note := func(err error) {
		if err != nil {
			s.Unread = append(s.Unread, err.Error())
		}
	}
	s.Installed, err = s.Cluster.Installed(ctx)
	note(err)
	if id, _ := s.values["cluster"].(string); id != "" {
		s.ID = id
	} else {
		s.ID, err = s.PropertyID(ctx)
		note(err)
	}
	s.Served, err = s.ServedExports()
	note(err)
	network, err := s.ReadNetwork(ctx)
	note(err)
	if s.Ranges, _ = trust.Sources(network).PodRanges(); len(s.Ranges) == 0 {
		s.Ranges, err = s.PodCIDRs(ctx)
		note(err)
	}
	cilium, err := s.ReadCilium(ctx)
	note(err)
	gateways, err := s.ReadOVN(ctx)
	note(err)
	cgroup, _ := s.values["cgroup"].(map[string]any)
	s.Warnings = append(preflight.Cilium(cilium).Warnings(cgroup["belowRoot"] == true), preflight.OVN(gateways).Warnings()...)
	s.DNSError = s.whyNoDNS(ctx)
	return ctx.Err()
}

// whyNoDNS returns why CoreDNS cannot answer for the clusterset; empty if it can.
func (s *beforeSite) whyNoDNS(ctx context.Context) string {
	dns, err := s.ReadDNS(ctx)
	if err == nil {
		_, err = corefile.Add(dns.Corefile, clustersetZone)
	}
	if err != nil {
		return strings.TrimPrefix(err.Error(), "context "+s.Context()+": ")
	}
	if yes, known := coredns.Multicluster(dns.Image); known && !yes {
		return dns.Title() + " " + dns.Image + " is older than 1.12.2 and does not support multicluster"
	}
	return ""
}

// run runs straitd preflight in a pod, and reads its answer.
func (s *beforeSite) run(ctx context.Context, p cluster.TrialPod, question, answer any, more ...string) error {
	var stdin io.Reader
	if question != nil {
		text, err := json.Marshal(question)
		if err != nil {
			return err
		}
		stdin = bytes.NewReader(append(text, '\n'))
	}
	out, err := s.Run(ctx, p.Name, preflightContainer, dialTime, stdin, preflightCommand(p.Node, more...)...)
	if err != nil {
		return err
	}
	if out.Code != 0 {
		first, _, _ := strings.Cut(strings.TrimSpace(string(out.Stderr)), "\n")
		return fmt.Errorf("straitd preflight ended with exit code %d: %s", out.Code, first)
	}
	if err := json.NewDecoder(bytes.NewReader(out.Stdout)).Decode(answer); err != nil {
		return fmt.Errorf("read the answer of straitd preflight: %w", err)
	}
	return nil
}

// sendAll has nodes send to each other's ports.
func sendAll(ctx context.Context, sites []*beforeSite) error {
	serving, stop := context.WithTimeout(ctx, serveTime)
	defer stop()
	var servers sync.WaitGroup
	var counts []int
	var ends []*io.PipeWriter
	for _, s := range sites {
		counts = append(counts, len(s.pods))
		for _, p := range s.pods {
			open, end := io.Pipe()
			ends = append(ends, end)
			// How it ends is seen by what the others send.
			servers.Go(func() {
				_, _ = s.Run(serving, p.Name, preflightContainer, serveTime, open, preflightCommand(p.Node, "serve")...)
			})
		}
	}
	defer func() {
		// A byte ends them: the end of stdin alone does not reach a pod by every API server.
		time.AfterFunc(endTime, stop)
		for _, end := range ends {
			go func() { // the last Close ends a Write that nothing reads
				_, _ = end.Write([]byte("\n"))
				end.Close()
			}()
		}
		servers.Wait()
		for _, end := range ends {
			end.Close()
		}
	}()
	return together(sites, func(s *beforeSite) error { return s.send(ctx, sites, counts) })
}

// send has each node of a cluster send to others.
func (s *beforeSite) send(ctx context.Context, sites []*beforeSite, counts []int) error {
	own := slices.Index(sites, s)
	s.Replies = map[string][]api.PortReply{}
	var lock sync.Mutex
	var wg sync.WaitGroup
	for i, p := range s.pods {
		var probes []api.PortProbe
		for _, at := range check.Targets(counts, own, i, mostTargets) {
			probes = append(probes, sites[at[0]].probe(sites[at[0]].pods[at[1]])...)
		}
		if len(probes) == 0 {
			continue
		}
		wg.Go(func() {
			var replies []api.PortReply
			err := s.run(ctx, p, probes, &replies, "dial")
			lock.Lock()
			defer lock.Unlock()
			if err != nil {
				s.Unread = append(s.Unread, fmt.Sprintf("node %s could not send to others: %v", p.Node, err))
				return
			}
			s.Replies[p.Node] = replies
		})
	}
	wg.Wait()
	return ctx.Err()
}

// probe is what the others send to a node: to its ports that are free.
func (s *beforeSite) probe(to cluster.TrialPod) (out []api.PortProbe) {
	for _, m := range s.Machines {
		if m.Node != to.Node {
			continue
		}
		var ports []string
		for _, p := range m.Ports {
			if p.Probed && p.Error == "" {
				ports = append(ports, p.Port)
			}
		}
		for _, addr := range to.Addresses {
			out = append(out, api.PortProbe{Node: s.Context() + "/" + to.Node, Addr: addr, Ports: ports})
		}
	}
	return out
}
