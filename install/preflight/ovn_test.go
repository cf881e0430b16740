package preflight

import (
	"strings"
	"testing"
)

func TestOVN(t *testing.T) {
	const shared, local = `{"default":{"mode":"shared","bridge-id":"br-ex"}}`, `{"default":{"mode":"local","bridge-id":"br-ex"}}`
	for what, c := range map[string]struct {
		ovn  OVN
		want string // a part of the warning
	}{
		"another network":  {nil, ""},
		"through the host": {OVN{"a": local, "b": local}, ""},
		"past the host":    {OVN{"b": shared, "a": shared, "c": local}, "Node a: metadata.annotations[k8s.ovn.org/l3-gateway-config]: OVN-Kubernetes is in gateway mode shared (on 2 of 3 nodes)"},
		"not readable":     {OVN{"a": "shared"}, ""},
	} {
		got := c.ovn.Warnings()
		if (len(got) == 1) != (c.want != "") || len(got) == 1 && !strings.Contains(got[0], c.want) {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
	}
}
