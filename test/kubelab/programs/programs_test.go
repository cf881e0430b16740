package programs

import (
	"slices"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	got, err := parse("go.mod", []byte(`module x
go 1.26.0
tool (
	k8s.io/kubernetes/cmd/kubelet
	go.etcd.io/etcd/server/v3
)
require (
	go.etcd.io/etcd/server/v3 v3.6.16
	k8s.io/kube v0.1.0
	k8s.io/kubernetes v1.36.3
)
`))
	if err != nil || len(got) != 2 {
		t.Fatalf("got %+v, %v", got, err)
	}
	for _, p := range got {
		switch p.path {
		case "k8s.io/kubernetes/cmd/kubelet":
			if p.name != "kubelet" || p.version != "v1.36.3" || !strings.Contains(p.ldflags(), "version.gitMinor=36 ") {
				t.Errorf("%+v, flags %s", p, p.ldflags())
			}
		case "go.etcd.io/etcd/server/v3":
			if p.name != "etcd" || p.version != "v3.6.16" || p.ldflags() != "-s -w" {
				t.Errorf("%+v, flags %s", p, p.ldflags())
			}
		}
	}
}

// everything are all modules that there are.
var everything = append(slices.Clone(Kubernetes), "flannel", "kube-router", "cilium")

// Every program of the committed modules has a name of its own and a version.
func TestCommittedModules(t *testing.T) {
	source, err := Source(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all, err := everything.list(source)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, p := range all {
		if p.version == "" || seen[p.name] {
			t.Errorf("%+v has no version, or another's name", p)
		}
		seen[p.name] = true
	}
	for _, name := range []string{"etcd", "kube-apiserver", "kube-apiserver-oldest", "kube-apiserver-newest", "kubelet", "containerd", "ctr", "coredns", "kubectl", "traefik"} {
		if !seen[name] {
			t.Errorf("%s is not among the programs", name)
		}
	}
}
