package install

import (
	"strings"
	"testing"

	"strait.io/strait/test/kubelab/apiserver"
)

const nodeWithPods = "apiVersion: v1\nkind: Node\nmetadata: {name: first}\nspec: {podCIDR: 10.99.1.0/24, podCIDRs: [10.99.1.0/24]}\n"

// TestAuthorityByDefault: install without a flag gives a cluster a root and its own pin, and only pins
// count at once. Again, nothing changes. An upgrade of a release of before makes nothing, and off is
// one word.
func TestAuthorityByDefault(t *testing.T) {
	u := newUser(t)
	u.uninstallAtEnd("c1")
	if err := apiserver.Lab(t, 2).Apply(t.Context(), "c1", nodeWithPods); err != nil {
		t.Fatal(err)
	}
	made := func() string {
		return u.kubectl("c1", "-n", "strait-system", "get", "secret/strait-authority", "configmap/strait-pins", "configmap/strait-believe", "--ignore-not-found",
			"-o", `jsonpath={range .items[*]}{.metadata.name} {.data}{"\n"}{end}`)
	}
	config := func() string {
		return u.kubectl("c1", "-n", "strait-system", "get", "configmap", "strait", "-o", `jsonpath={.data.strait\.yaml}`)
	}
	u.does(with(installC1, "--wait=false"), "created  Secret strait-system/strait-authority", "created  ConfigMap strait-system/strait-believe", "believes only what is signed; its root is SHA256:")
	keys := made()
	if !strings.Contains(keys, "10.99.0.0/16") || !strings.Contains(keys, `"believe":"pinned"`) || !strings.Contains(config(), "believeFile") {
		t.Fatalf("after install there are %s and the configuration\n%s", keys, config())
	}
	u.does(with(installC1, "--wait=false"))
	u.does([]string{"upgrade", "--context", "c1", "--wait=false"})
	if now := made(); now != keys {
		t.Errorf("install again made %s\nwas %s", now, keys)
	}

	u.kubectl("c1", "-n", "strait-system", "delete", "secret/strait-authority", "configmap/strait-pins", "configmap/strait-believe")
	u.does([]string{"upgrade", "--context", "c1", "--wait=false"})
	if now := made(); now != "" {
		t.Errorf("an upgrade of a release without keys, which can be joined to others, made %s", now)
	}
	u.does([]string{"upgrade", "--context", "c1", "--wait=false", "--authority=off"})
	if got := config(); !strings.Contains(got, "authority:\n  mode: \"off\"\n") {
		t.Errorf("off is\n%s", got)
	}
	u.fails([]string{"upgrade", "--context", "c1", "--wait=false", "--authority=none"}, `authority.mode: "none" is invalid: use auto, pinned or off`)
	u.kubectl("c1", "delete", "node", "first")
}

// TestFromRepository: install and upgrade say which tool will put its own back, and commands that
// change whom a cluster believes refuse where a repository says that.
func TestFromRepository(t *testing.T) {
	u := newUser(t)
	u.uninstallAtEnd("c1")
	u.does(with(installC1, "--wait=false"))
	u.kubectl("c1", "-n", "strait-system", "label", "daemonset", "strait", "kustomize.toolkit.fluxcd.io/name=strait", "kustomize.toolkit.fluxcd.io/namespace=flux-system")
	u.does([]string{"upgrade", "--context", "c1", "--wait=false"}, "! c1: Flux (Kustomization flux-system/strait) applies strait from a repository, and puts back what this command changes")
	u.kubectl("c1", "-n", "strait-system", "create", "configmap", "strait-members")
	u.kubectl("c1", "-n", "strait-system", "patch", "configmap", "strait-members", "-p", `{"data": {"far.yaml": "cluster: far"}}`)
	u.kubectl("c1", "-n", "strait-system", "label", "daemonset", "strait", "kustomize.toolkit.fluxcd.io/name-", "kustomize.toolkit.fluxcd.io/namespace-")
	u.does([]string{"upgrade", "--context", "c1", "--wait=false"}, "! c1: the ConfigMap strait-members lists which clusters this one believes; if a repository applies the chart")
	for _, command := range [][]string{{"evict", "far", "--yes"}, {"disconnect", "far"}, {"rotate", "far"}, {"rotate", "--gossip-key"}} {
		u.fails(append(append([]string{"clusterset"}, command...), "--context", "c1"), "context c1: the ConfigMap strait-members lists which clusters this one believes (far.yaml); change its files in the repository")
	}
}
