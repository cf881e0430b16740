package install

import (
	"slices"
	"strings"
	"testing"

	"strait.io/strait/test/kubelab/apiserver"
)

// TestViewReader: install makes the token once. A person with the Role strait-view-reader may get the proxy of that
// Service and the token, and of all else as much as a person without any Role: at the API server itself.
func TestViewReader(t *testing.T) {
	u := newUser(t)
	u.uninstallAtEnd("c1")
	u.does(with(installC1, "--wait=false"), "created  Secret strait-system/strait-view", "created  Deployment strait-system/strait-view", "created  Service strait-system/strait-view")
	token := func() string {
		return u.kubectl("c1", "-n", "strait-system", "get", "secret", "strait-view", "-o", "jsonpath={.data.token}")
	}
	first := token()
	u.does(with(installC1, "--wait=false"))
	u.does([]string{"upgrade", "--context", "c1", "--wait=false"})
	if now := token(); now != first || len(first) < 40 {
		t.Errorf("the token was %q and is %q", first, now)
	}

	u.kubectl("c1", "-n", "strait-system", "create", "rolebinding", "look", "--role=strait-view-reader", "--user=alice")
	rights := func(name, namespace string) []string {
		all := strings.Split(u.kubectl("c1", "auth", "can-i", "--list", "--no-headers", "--as", name, "-n", namespace), "\n")
		for i := range all {
			all[i] = strings.Join(strings.Fields(all[i]), " ")
		}
		return all
	}
	before := rights("bob", "strait-system")
	more := slices.DeleteFunc(rights("alice", "strait-system"), func(r string) bool { return slices.Contains(before, r) })
	slices.Sort(more)
	want := []string{"secrets [] [strait-view] [get]", "services/proxy [] [https:strait-view:https] [get]"}
	if !slices.Equal(more, want) {
		t.Errorf("the Role allows %q, want %q", more, want)
	}
	if elsewhere := slices.DeleteFunc(rights("alice", "default"), func(r string) bool { return slices.Contains(rights("bob", "default"), r) }); len(elsewhere) > 0 {
		t.Errorf("it allows %q in another namespace", elsewhere)
	}
	// The API server refuses alice's requests, or passes them on: to no pod here, since there are no nodes.
	proxy := "/api/v1/namespaces/strait-system/services/https:strait-view:https/proxy/v1/status"
	for _, c := range []struct{ as, path, says string }{
		{"alice", proxy, "no endpoints available"},
		{"bob", proxy, "forbidden"},
		{"alice", strings.Replace(proxy, "https:strait-view:https", "http:strait-view:https", 1), "forbidden"},
		{"alice", "/api/v1/namespaces/strait-system/secrets", "forbidden"},
		{"alice", "/api/v1/namespaces/strait-system/secrets/strait-clusterset", "forbidden"},
		{"alice", "/api/v1/namespaces/strait-system/pods", "forbidden"},
		{"alice", "/api/v1/nodes", "forbidden"},
	} {
		out, err := apiserver.Lab(t, 2).Kubectl(t.Context(), "c1", nil, "get", "--raw", c.path, "--as", c.as)
		if err == nil || !strings.Contains(strings.ToLower(err.Error()), c.says) {
			t.Errorf("%s at %s: %s, %v; want %q", c.as, c.path, out, err, c.says)
		}
	}
}
