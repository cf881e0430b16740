package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"strait.io/strait/cli"
	"strait.io/strait/cli/connectivity"
	"strait.io/strait/install/cluster"
)

// nodesOfEach is how many nodes of a cluster are used: calls between two nodes can fail where those
// on one work.
const nodesOfEach = 2

// open asks the clusters what the test needs to know, and removes what an earlier one left. After an error,
// nothing was made.
func (t *trial) open(ctx context.Context, grounds map[string]ground) error {
	for _, name := range slices.Sorted(maps.Keys(grounds)) {
		t.sites = append(t.sites, &site{ground: grounds[name], Cluster: connectivity.Cluster{Context: name, Imports: map[string][]netip.Addr{}}})
	}
	if err := together(t.sites, func(s *site) error { return t.ask(ctx, s) }); err != nil {
		return err
	}
	slices.SortFunc(t.sites, func(a, b *site) int { return cmp.Compare(a.Cluster.Name, b.Cluster.Name) })
	t.facts = connectivity.Facts{Namespace: t.f.namespace, Contexts: map[string]string{}}
	for i, s := range t.sites {
		if i > 0 && t.sites[i-1].Cluster.Name == s.Cluster.Name {
			return cli.UsageError("--context %s and --context %s lead to clusters with one id, %s", t.sites[i-1].Context, s.Context, s.Cluster.Name)
		}
		t.facts.Contexts[s.Cluster.Name] = s.Context
		t.report.Clusters = append(t.report.Clusters, s.Cluster.Name)
	}
	// A removal that has begun goes on when the test is interrupted.
	ctx, cancel := clearing(ctx)
	defer cancel()
	return together(t.sites, func(s *site) error {
		found, err := s.Clear(ctx)
		if found && err == nil {
			t.tell("%s: removed what an earlier test left", s.Context)
		}
		return err
	})
}

func (t *trial) ask(ctx context.Context, s *site) (err error) {
	if s.setup.Image, s.setup.PullSecrets, err = s.Image(ctx); err != nil {
		return err
	}
	if s.Cluster.Name, err = s.ID(ctx); err != nil {
		return err
	}
	if s.Cluster.Name == "" {
		return fmt.Errorf("context %s: the cluster has no id; give it one: strait upgrade --context %s --cluster NAME", s.Context, s.Context)
	}
	if s.setup.Nodes, err = s.DaemonNodes(ctx); err != nil {
		return err
	}
	if !t.f.all && len(s.setup.Nodes) > nodesOfEach {
		s.setup.Nodes = s.setup.Nodes[:nodesOfEach]
	}
	s.setup.Namespace, s.setup.Cluster, s.setup.Host = t.f.namespace, s.Cluster.Name, t.f.host
	s.setup.ExportAPI, err = s.ServedExport(ctx)
	return err
}

// make makes everything, and waits until the pods run and the Services are imported.
func (t *trial) make(ctx context.Context) error {
	// All namespaces first: an import goes only to clusters that have the namespace.
	if err := together(t.sites, func(s *site) error { return s.Make(ctx, [][]byte{s.setup.NamespaceObject()}) }); err != nil {
		return err
	}
	var lock sync.Mutex
	err := together(t.sites, func(s *site) error {
		if err := s.Make(ctx, s.setup.Objects()); err != nil {
			return err
		}
		err := s.Make(ctx, s.setup.HostPods())
		if errors.Is(err, cluster.ErrRefused) {
			lock.Lock()
			defer lock.Unlock()
			t.report.Skipped = append(t.report.Skipped, connectivity.Skip{Cluster: s.Cluster.Name, What: "calls from the nodes' own network", Why: err.Error()})
			s.setup.Host = false
			return nil
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := together(t.sites, func(s *site) error { return t.awaitPods(ctx, s) }); err != nil {
		return err
	}
	return together(t.sites, func(s *site) error { return t.awaitImports(ctx, s) })
}

// usualStart is how long pods may take to start before the test says what they wait for.
const usualStart = 10 * time.Second

func (t *trial) awaitPods(ctx context.Context, s *site) error {
	began, last := t.a.Now(), ""
	report := func(text string) {
		if text != last && t.a.Now().Sub(began) > usualStart {
			t.tell("%s: %s", s.Context, text)
			last = text
		}
	}
	roles := []string{"pod"}
	if s.setup.Host {
		roles = append(roles, "host")
	}
	for _, role := range roles {
		pods, err := s.WaitPods(ctx, role, len(s.setup.Nodes), report)
		if err != nil {
			return err
		}
		slices.SortFunc(pods, func(a, b cluster.TrialPod) int { return cmp.Compare(a.Name, b.Name) })
		for _, p := range pods {
			id := connectivity.Identity{Cluster: s.Cluster.Name, Node: p.Node, Pod: p.Name}
			s.Clients = append(s.Clients, connectivity.Client{Identity: id, Host: role == "host", Addresses: p.Addresses})
			if role == "pod" {
				s.Servers = append(s.Servers, connectivity.Server{Identity: id, Addresses: p.Addresses})
			}
		}
	}
	t.tell("%s: cluster %s, pods on %s", s.Context, s.Cluster.Name, cli.Some(s.setup.Nodes, mostNodes))
	return nil
}

// mostNodes is how many nodes a line names.
const mostNodes = 5

// importTime is how long an import may take. One that is not there then is a failure, and no reason to wait.
const importTime = 20 * time.Second

func (t *trial) awaitImports(ctx context.Context, s *site) error {
	over := t.a.Now().Add(importTime)
	for {
		missing := 0
		for _, to := range t.sites {
			for _, name := range []string{connectivity.ServiceOf(to.Cluster.Name), connectivity.HeadlessOf(to.Cluster.Name)} {
				ips, found, err := s.Import(ctx, name)
				switch {
				case err != nil:
					return err
				case !found:
					missing++
				case len(ips) > 0:
					s.Imports[to.Cluster.Name] = ips
				}
			}
		}
		if missing == 0 || t.a.Now().After(over) {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(300 * time.Millisecond):
		}
	}
}

// call makes all calls, group by group, and prints how each group went.
func (t *trial) call(ctx context.Context) error {
	var clusters []connectivity.Cluster
	for _, s := range t.sites {
		clusters = append(clusters, s.Cluster)
	}
	cases := connectivity.Cases(t.f.namespace, clusters)
	results := make([]connectivity.Result, len(cases))
	for _, group := range connectivity.Groups {
		began := t.a.Now()
		err := together(t.sites, func(s *site) error { return t.callFrom(ctx, s, group, cases, results) })
		if err != nil {
			return err
		}
		fine, all := 0, 0
		for i, c := range cases {
			if c.Group == group {
				all++
				if results[i].State == connectivity.OK {
					fine++
				}
			}
		}
		t.tell("%s %-15s %d/%d in %.1f s", glyphOf(fine == all), group, fine, all, t.a.Now().Sub(began).Seconds())
	}
	t.report.Results = results
	return nil
}

// callFrom has each client of a cluster make its calls of a group. What a client cannot be asked is unknown.
func (t *trial) callFrom(ctx context.Context, s *site, group connectivity.Group, cases []connectivity.Case, results []connectivity.Result) error {
	var wg sync.WaitGroup
	for _, client := range s.Clients {
		wg.Go(func() {
			var calls []connectivity.Call
			for i, c := range cases {
				if call, has := c.Call(i); has && c.Group == group && c.Client.Identity == client.Identity {
					calls = append(calls, call)
				}
			}
			var outcomes []connectivity.Outcome
			var err error
			if len(calls) > 0 {
				outcomes, err = s.Call(ctx, client.Pod, calls)
			}
			for i, c := range cases {
				if c.Group != group || c.Client.Identity != client.Identity {
					continue
				}
				at := slices.IndexFunc(outcomes, func(o connectivity.Outcome) bool { return o.ID == i })
				switch {
				case at >= 0:
					results[i] = connectivity.Judge(c, outcomes[at], nil)
				case err == nil && c.Missing == "":
					results[i] = connectivity.Judge(c, connectivity.Outcome{}, errors.New("the client did not report it"))
				default:
					results[i] = connectivity.Judge(c, connectivity.Outcome{}, err)
				}
			}
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// findOut asks the clusters what could explain the failures. What it cannot find out is left out.
func (t *trial) findOut(ctx context.Context) {
	t.tell("asking the daemons about what failed")
	failed := map[string]bool{}
	for _, r := range t.report.Results {
		if r.State == connectivity.Failed {
			failed[r.From] = true
			for _, s := range t.sites {
				for _, server := range s.Servers {
					if s.Cluster.Name == r.To {
						failed[r.To+"/"+server.Node] = true
					}
				}
			}
		}
	}
	t.facts.Exports, t.facts.Zones, t.facts.Policies = map[string]string{}, map[string]bool{}, map[string][]string{}
	t.facts.Nodes = map[string]connectivity.NodeFacts{}
	services := map[string]string{}
	for _, s := range t.sites {
		services[s.Cluster.Name] = t.f.namespace + "/" + connectivity.ServiceOf(s.Cluster.Name)
	}
	var lock sync.Mutex
	_ = together(t.sites, func(s *site) error {
		name := s.Cluster.Name
		trouble, _ := s.ExportTrouble(ctx, connectivity.ServiceOf(name))
		zone, known := s.Zone(ctx)
		policies, _ := s.Policies(ctx)
		nodes := map[string]connectivity.NodeFacts{}
		for _, node := range s.setup.Nodes {
			if failed[name+"/"+node] {
				nodes[name+"/"+node] = s.Node(ctx, node, services)
			}
		}
		lock.Lock()
		defer lock.Unlock()
		if trouble != "" {
			t.facts.Exports[name] = trouble
		}
		if known {
			t.facts.Zones[name] = zone
		}
		t.facts.Policies[name] = policies
		maps.Copy(t.facts.Nodes, nodes)
		return nil
	})
}

// measure measures each pair of clusters, one after the other, so that they do not disturb each other.
func (t *trial) measure(ctx context.Context) error {
	for _, from := range t.sites {
		for _, to := range t.sites {
			m, ok := connectivity.Measures(from.Cluster, to.Cluster)
			if !ok {
				t.report.Skipped = append(t.report.Skipped, connectivity.Skip{Cluster: from.Cluster.Name, What: "performance to " + to.Cluster.Name, Why: "they have no ClusterSetIP and pods of one address family"})
				continue
			}
			t.tell("measuring from %s to %s", from.Cluster.Name, to.Cluster.Name)
			got, err := from.Measure(ctx, from.Clients[0].Pod, m)
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err != nil {
				got.Errors = append(got.Errors, err.Error())
			}
			t.report.Pairs = append(t.report.Pairs, connectivity.Sum(from.Cluster.Name, to.Cluster.Name, m, got))
		}
	}
	return nil
}
