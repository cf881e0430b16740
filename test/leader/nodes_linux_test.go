package leader

import (
	"strings"
	"testing"
	"time"
)

// TestNodeAnnotations: with a kubelet's account, no attacker gives a Node prefixes of pods, takes some away,
// or makes it an entry. Kubelets do all that they do besides, and operators what they did.
func TestNodeAnnotations(t *testing.T) {
	w := newWorld(t, nil)
	node := "n" + time.Now().Format("150405")
	kubelet := []string{"--as=system:node:" + node, "--as-group=system:nodes", "--as-group=system:authenticated"}
	as := func(args string, more ...string) []string {
		return append(append(strings.Fields(strings.ReplaceAll(args, "NODE", node)), more...), kubelet...)
	}
	const (
		refused = "may not change annotations of its Node that begin with strait.io/"
		cidrs   = "may not give itself podCIDRs"
	)
	create := func(annotations, spec string) string {
		return "{apiVersion: v1, kind: Node, metadata: {name: " + node + ", annotations: {" + annotations + "}}, spec: {" + spec + "}}"
	}
	w.refused("c1", create("strait.io/prefixes: 10.1.1.0/24", ""), refused, as("create -f -")...)
	w.refused("c1", create("", "podCIDR: 10.1.1.0/24, podCIDRs: [10.1.1.0/24]"), cidrs, as("create -f -")...)
	_, err := w.lab.Kubectl(t.Context(), "c1", []byte(create("volumes: attached", "")), as("create -f -")...)
	w.must(err)
	w.undo("c1", "delete", "node", node)

	annotate := func(annotation string) string { return `{"metadata":{"annotations":{` + annotation + `}}}` }
	const patch = "patch node NODE --type=merge -p "
	w.refused("c1", "", refused, as(patch+annotate(`"strait.io/prefixes":"10.1.1.0/25"`))...)
	w.refused("c1", "", refused, as(patch+annotate(`"strait.io/cluster-ips":"10.96.3.4/32"`))...)
	w.refused("c1", "", cidrs, as(patch+`{"spec":{"podCIDR":"10.1.1.0/24","podCIDRs":["10.1.1.0/24"]}}`)...)
	w.kubectl("c1", as(patch+annotate(`"volumes":"detached"`))...)

	// A status too has metadata. Kubelets may not read nodes/status, so kubectl patch and --subresource
	// are none of theirs.
	status := func(annotation string) string {
		return `{"apiVersion":"v1","kind":"Node","metadata":{"name":"` + node + `","annotations":{"volumes":"detached"` + annotation + `}},` +
			`"status":{"addresses":[{"type":"InternalIP","address":"192.0.2.9"}]}}`
	}
	put := as("replace --raw /api/v1/nodes/NODE/status -f -")
	w.refused("c1", status(`,"strait.io/prefixes":"10.1.1.0/25"`), refused, put...)
	_, err = w.lab.Kubectl(t.Context(), "c1", []byte(status("")), put...)
	w.must(err)

	// An operator may, and what he wrote stays there, whatever the kubelet does besides.
	w.kubectl("c1", "annotate", "node", node, "strait.io/prefixes=10.1.9.0/24")
	w.kubectl("c1", "patch", "node", node, "--type=merge", "-p", `{"spec":{"podCIDR":"10.1.1.0/24","podCIDRs":["10.1.1.0/24"]}}`)
	_, err = w.lab.Kubectl(t.Context(), "c1", []byte(status(`,"strait.io/prefixes":"10.1.9.0/24"`)), put...)
	w.must(err)
	w.refused("c1", status(""), refused, put...)
	w.kubectl("c1", as(patch+annotate(`"volumes":"again"`))...)
	w.refused("c1", "", refused, as("annotate node NODE strait.io/prefixes-")...)
	w.refused("c1", "", refused, as("annotate node NODE strait.io/prefixes=10.1.9.0/25 --overwrite")...)
	w.kubectl("c1", "annotate", "node", node, "strait.io/prefixes-")
}
