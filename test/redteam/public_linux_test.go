package redteam

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/gossip"
	"strait.io/strait/internal/testutil"
)

// TestPublicDomain: a cluster that others accept every namespace from exports a Service github in a
// namespace com, and one in dev. Clients of a machine whose local names fall through look for
// github.com by their search path. They get no answer from that cluster; what is no domain, and what
// the machine has itself, still falls through.
func TestPublicDomain(t *testing.T) {
	if !inside(t) {
		return
	}
	w := newWorld(t, map[string]byte{"mallory": mallory})
	pin := w.pins["mallory"]
	pin.Namespaces = []string{"*"}
	w.pins["mallory"] = pin
	const dns = "127.0.0.1:5356"
	w.west.stop()
	w.west.write("pins.yaml", string(w.pins.Encode()))
	w.west.write("manifests/dev.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: dev}\n")
	w.west.config = map[string]any{"dns": map[string]any{"listen": []string{dns}, "fallThrough": "cluster.local"}}
	w.west.start()

	root := w.roots["mallory"]
	a := w.attack(origin("mallory", "n0"), &gossip.Authority{Root: &root, Node: authority.PrivateKey{66}})
	a.Publish(content("n0", mallory))
	a.lead(clustermesh.Content{Exports: []clustermesh.Export{exported("com", "github", 0), exported("dev", "web", 0), exported("backend", "cart", 0)}})
	r := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", dns)
	}}
	for _, name := range []string{"github.com.svc.clusterset.local.", "cart.backend.svc.cluster.local.", "web.dev.svc.cluster.local."} {
		testutil.Eventually(t, patience, func() error {
			got, err := r.LookupHost(t.Context(), name)
			if err == nil && len(got) == 0 {
				err = fmt.Errorf("%s has no address", name)
			}
			return err
		})
	}
	got, err := r.LookupHost(t.Context(), "github.com.svc.cluster.local.")
	var failed *net.DNSError
	if !errors.As(err, &failed) || !failed.IsNotFound {
		t.Errorf("github.com is at %v by the search path: %v", got, err)
	}
	w.west.says("STR2327", "namespace com", "do not fall through")
}
