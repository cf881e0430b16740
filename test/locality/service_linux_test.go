package locality

import (
	"fmt"
	"maps"
	"math"
	"net/netip"
	"slices"
	"strings"
	"time"

	"strait.io/strait/daemon/api"
	"strait.io/strait/internal/testutil"
)

const (
	serveName = "default/serve"
	podPort   = 8080
	firstPod  = 10 // the last byte of the first pod's address
)

// service is what a cluster's YAML says of its Service.
type service struct {
	ready, all  int
	annotations map[string]string
}

// apply writes the cluster's YAML. The first pods are the ones that are ready.
func (c *cluster) apply() {
	c.w.Helper()
	var b strings.Builder
	b.WriteString("apiVersion: v1\nkind: Service\nmetadata:\n  name: serve\n  annotations:\n")
	for _, k := range slices.Sorted(maps.Keys(c.service.annotations)) {
		fmt.Fprintf(&b, "    %s: %q\n", k, c.service.annotations[k])
	}
	b.WriteString(`spec: {ports: [{name: http, port: 80, targetPort: 8080}]}
---
apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceExport
metadata: {name: serve}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: serve-1, labels: {kubernetes.io/service-name: serve}}
addressType: IPv4
ports: [{name: http, port: 8080}]
endpoints:
`)
	for i := range c.service.all {
		fmt.Fprintf(&b, "- {addresses: [%s], nodeName: n1, conditions: {ready: %t}}\n", c.pod(byte(firstPod+i)), i < c.service.ready)
	}
	c.write("manifests/serve.yaml", b.String())
}

// ready makes so many of the cluster's pods ready, and the others not.
func (c *cluster) ready(n int) {
	c.w.Helper()
	c.service.ready = n
	c.apply()
}

// annotate sets an annotation of the cluster's Service, or removes it if the value is empty.
func (c *cluster) annotate(key, value string) {
	c.w.Helper()
	c.service.annotations[key] = value
	if value == "" {
		delete(c.service.annotations, key)
	}
	c.apply()
}

// shares is which part of the connections each cluster gets.
type shares map[string]float64

// String lists what is not nothing.
func (s shares) String() string {
	var out []string
	for _, c := range slices.Sorted(maps.Keys(s)) {
		if s[c] > 0 {
			out = append(out, fmt.Sprintf("%s %.1f %%", c, 100*s[c]))
		}
	}
	return strings.Join(out, ", ")
}

// farthest is the largest difference of any cluster's share.
func (s shares) farthest(o shares) (worst float64) {
	for _, m := range []shares{s, o} {
		for c := range m {
			worst = max(worst, math.Abs(s[c]-o[c]))
		}
	}
	return worst
}

// strays reports whether anything, however little, goes to a cluster that should get nothing.
func (s shares) strays(want shares) bool {
	for c := range s {
		if s[c] > 0 && want[c] == 0 {
			return true
		}
	}
	return false
}

// explained is the frontend that strait explains on the callers' node.
func (w *world) explained() (api.Frontend, error) {
	e, err := w.near.api().Explain(w.Context(), serveName, "")
	if err != nil {
		return api.Frontend{}, err
	}
	if len(e.Service.Frontends) != 1 {
		return api.Frontend{}, fmt.Errorf("%d frontends are explained, want 1", len(e.Service.Frontends))
	}
	return e.Service.Frontends[0], nil
}

// plan is which part of new connections strait says goes to each cluster.
func (w *world) plan() (shares, error) {
	f, err := w.explained()
	if err != nil {
		return nil, err
	}
	out := shares{}
	for _, e := range f.Endpoints {
		out[e.Cluster] += e.Share
	}
	if !f.InKernel {
		return out, fmt.Errorf("the kernel does not hold the plan: %s", out)
	}
	return out, nil
}

// settles waits until strait explains these shares.
func (w *world) settles(want shares) {
	w.Helper()
	w.settlesWithin(want, patience)
}

func (w *world) settlesWithin(want shares, limit time.Duration) {
	w.Helper()
	testutil.Eventually(w, limit, func() error {
		got, err := w.plan()
		if err == nil && (got.farthest(want) > 0.002 || got.strays(want)) {
			err = fmt.Errorf("strait explains %s; want %s", got, want)
		}
		return err
	})
}

// reason is why an endpoint of a cluster is used, or not.
func (w *world) reason(cluster string) string {
	w.Helper()
	f, err := w.explained()
	w.must(err)
	for _, e := range f.Endpoints {
		if e.Cluster == cluster {
			return e.Reason
		}
	}
	return "no endpoint"
}

// frontend is the address that the callers connect to.
func (w *world) frontend() netip.AddrPort {
	w.Helper()
	f, err := w.explained()
	w.must(err)
	return netip.AddrPortFrom(f.Addr.IP, f.Addr.Port)
}
