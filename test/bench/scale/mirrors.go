package scale

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/l4"
)

// mirrorPolicy is the policy by which c1 has mirrors of c2's Services, in a namespace that it creates.
// perMirror is how many endpoints each has.
const (
	mirrorPolicy    = "bench"
	mirrorNamespace = "mirrors"
	perMirror       = 2
	policiesPath    = "/apis/strait.io/v1alpha1/servicepolicies"
)

// offer returns what c2's leader publishes: its nodes, and so many Services by the policy. The first
// endpoint of the first Service is as ready as asked.
func offer(peers, services int, ready bool) clustermesh.Content {
	var c clustermesh.Content
	for n := range peers {
		c.Nodes = append(c.Nodes, remoteName(n))
	}
	for i := range services {
		s := clustermesh.ServiceName{Namespace: "shop", Name: serviceName(i)}
		c.Mirrors = append(c.Mirrors, clustermesh.Export{
			Service: s, Type: clustermesh.ClusterSetIP, Policy: mirrorPolicy, Created: 1, Labels: map[string]string{"app": s.Name},
			Ports: []clustermesh.ServicePort{{Name: "http", Proto: l4.TCP, Port: 80}},
		})
		for e := range perMirror {
			is := ready || i > 0 || e > 0
			c.Endpoints = append(c.Endpoints, clustermesh.Endpoint{
				Service: s, Addr: netip.AddrFrom4([4]byte{100, byte(64 + e), byte(i >> 8), byte(i)}), Ready: is, Serving: is, Zone: "zone-2",
				Ports: []clustermesh.EndpointPort{{Name: "http", Proto: l4.TCP, Port: 8080}},
			})
		}
	}
	return c
}

// mirrors measures a policy that mirrors many Services: the first time, and one endpoint that changes.
func (m *measurement) mirrors(ctx context.Context) error {
	if m.Mirrors == 0 {
		return nil
	}
	before, err := m.world.writes(ctx)
	if err != nil {
		return err
	}
	m.far.PublishCluster(offer(m.Peers, m.Mirrors, true))
	start := time.Now()
	if err := m.world.createPolicy(ctx); err != nil {
		return err
	}
	err = await(ctx, time.Second, func() (bool, error) {
		n, err := m.world.mirrored(ctx)
		return n == m.Mirrors, err
	})
	if err != nil {
		return fmt.Errorf("mirrors: %w", err)
	}
	took := time.Since(start)
	m.metrics["kube_mirrors_first_s"] = took.Seconds()
	after, err := m.world.rest(ctx, settled)
	if err != nil {
		return err
	}
	// One Service and one slice each, the namespace, which is not counted, and the policy's status.
	m.metrics["kube_writes_per_new_mirror"] = float64(after-before) / float64(m.Mirrors)
	say("%d mirrors were there after %.1f s, with %d writes", m.Mirrors, took.Seconds(), after-before)
	return m.mirrorChanges(ctx, after)
}

// mirrorChanges times changes of one endpoint: from the word of c2's leader to the slice of the mirror.
func (m *measurement) mirrorChanges(ctx context.Context, before int) error {
	var took []float64
	for n := range m.Changes {
		ready := n%2 == 1
		content := offer(m.Peers, m.Mirrors, ready)
		start := time.Now()
		m.far.PublishCluster(content)
		err := await(ctx, 5*time.Millisecond, func() (bool, error) {
			is, err := m.world.firstReady(ctx)
			return is == ready, err
		})
		if err != nil {
			return fmt.Errorf("change %d of a mirror: %w", n, err)
		}
		took = append(took, float64(time.Since(start).Microseconds())/1000)
		if _, err := m.world.rest(ctx, time.Second); err != nil {
			return err
		}
	}
	after, err := m.world.rest(ctx, settled)
	if err != nil {
		return err
	}
	slices.Sort(took)
	m.metrics["kube_mirror_change_ms"] = took[len(took)/2]
	m.metrics["kube_writes_per_mirror_change"] = float64(after-before) / float64(m.Changes)
	statuses, err := m.world.statuses(ctx)
	m.metrics["kube_policy_status_writes"] = float64(statuses)
	return err
}

// createPolicy creates the policy.
func (w *world) createPolicy(ctx context.Context) error {
	text, err := json.Marshal(tree{
		"apiVersion": "strait.io/v1alpha1", "kind": "ServicePolicy", "metadata": tree{"name": mirrorPolicy},
		"spec": tree{
			"from": []string{string(c2)}, "to": []string{"c1"}, "as": "mirror", "select": []tree{{"names": []string{".*"}}},
			"namespace": mirrorNamespace, "createNamespace": true,
		},
	})
	if err == nil {
		err = w.core.Discovery().RESTClient().Post().AbsPath(policiesPath).SetHeader("Content-Type", "application/json").Body(text).Do(ctx).Error()
	}
	if err != nil {
		return fmt.Errorf("create policy: %w", err)
	}
	return nil
}

// mirrored returns how many mirrors the policy's status counts.
func (w *world) mirrored(ctx context.Context) (int, error) {
	text, err := w.core.Discovery().RESTClient().Get().AbsPath(policiesPath, mirrorPolicy).DoRaw(ctx)
	if err != nil {
		return 0, fmt.Errorf("read policy: %w", err)
	}
	var policy struct{ Status struct{ Mirrored int } }
	return policy.Status.Mirrored, json.Unmarshal(text, &policy)
}

// firstReady reports whether all endpoints of the first mirror are ready.
func (w *world) firstReady(ctx context.Context) (bool, error) {
	list, err := w.core.DiscoveryV1().EndpointSlices(mirrorNamespace).List(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + serviceName(0)})
	if err != nil {
		return false, fmt.Errorf("read the slices of a mirror: %w", err)
	}
	ready := 0
	for _, s := range list.Items {
		for _, e := range s.Endpoints {
			if e.Conditions.Ready != nil && *e.Conditions.Ready {
				ready++
			}
		}
	}
	return ready == perMirror, nil
}
