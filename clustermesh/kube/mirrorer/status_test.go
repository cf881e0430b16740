package mirrorer

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/policy"
	"strait.io/strait/clustermesh/written"
	"strait.io/strait/test/kubelab/apiserver"
)

func TestMain(m *testing.M) { apiserver.Main(m) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// bench is a policy in a real API server, and a Mirrorer that leads: fakes do not know server-side
// apply.
type bench struct {
	t *testing.T
	*Mirrorer
	api dynamic.ResourceInterface
}

func newBench(t *testing.T) bench {
	lab := apiserver.Lab(t, 1)
	crd, err := os.ReadFile(filepath.Join("..", "..", "..", "install", "chart", "strait", "files", "strait.io_servicepolicies.yaml"))
	must(t, err)
	must(t, lab.Apply(t.Context(), "c1", string(crd)))
	_, err = lab.Kubectl(t.Context(), "c1", nil, "wait", "--for=create", "--for=condition=Established", "--timeout=30s", "crd/servicepolicies.strait.io")
	must(t, err)
	must(t, lab.Apply(t.Context(), "c1", "apiVersion: strait.io/v1alpha1\nkind: ServicePolicy\nmetadata: {name: p}\n"+
		"spec: {from: [c1], to: [c2], select: [{namespaces: [shop]}]}"))
	rest, err := clientcmd.BuildConfigFromFlags("", lab.Kubeconfig())
	must(t, err)
	m := mirrorerTo(t, rest)
	row, _ := written.Kind(written.ServicePolicy)
	b := bench{t, m, m.Dynamic.Resource(row.Resource)}
	t.Cleanup(func() { _ = b.api.Delete(context.Background(), "p", metav1.DeleteOptions{}) }) // the API server is the test's own
	return b
}

// facts are the API server's content now.
func (b bench) facts() (f policy.Facts, version string) {
	b.t.Helper()
	o, err := b.api.Get(b.t.Context(), "p", metav1.GetOptions{})
	must(b.t, err)
	var p policy.Policy
	must(b.t, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &p))
	return policy.Facts{Name: p.Name, Version: p.ResourceVersion, Generation: p.Generation, Spec: p.Spec, Was: p.Status}, p.ResourceVersion
}

// work lets the Mirrorer work with what is known, and returns its Problems.
func (b bench) work(f policy.Facts) []clustermesh.Problem {
	v := View{Cluster: "c1", Objects: []policy.Facts{f}, Unknown: func(string) bool { return false }}
	b.Pass(b.t.Context(), func() View { return v }, nil)
	return b.Problems()
}

// TestStatusIsWritten: the status follows what is known, and is written only if it differs.
func TestStatusIsWritten(t *testing.T) {
	b := newBench(t)
	f, before := b.facts()
	b.work(f)
	if _, now := b.facts(); now != before {
		t.Fatal("a status is written before anything is known")
	}
	f.Share = &clustermesh.Share{Policy: "p", Selected: 2, Shared: 1}
	f.Share.Skip(clustermesh.ServiceName{Namespace: "shop", Name: "old"}, policy.ExternalName, "no endpoints")
	if got := b.work(f); len(got) > 0 {
		t.Fatalf("%+v", got)
	}
	now, written := b.facts()
	s := now.Was
	if written == before || s.ObservedGeneration != 1 || s.Selected != 2 || s.Shared != 1 || len(s.Skipped) != 1 || s.Conditions[0].Reason != policy.SomeSkipped {
		t.Fatalf("%+v", s)
	}
	now.Share = f.Share
	b.work(now)
	if _, again := b.facts(); again != written {
		t.Error("the same status is written twice")
	}
	// Fields that are empty now go.
	now.Share = &clustermesh.Share{Policy: "p", Selected: 2, Shared: 2}
	b.work(now)
	after, _ := b.facts()
	if s := after.Was; len(s.Skipped) > 0 || s.Shared != 2 || s.Conditions[0].Reason != policy.InForce || !s.Conditions[0].LastTransitionTime.Equal(&now.Was.Conditions[0].LastTransitionTime) {
		t.Errorf("%+v", s)
	}
}

// TestStatusOfAnother: a policy that has changed does not get the status of what it was. That is no
// Problem: the next pass knows more.
func TestStatusOfAnother(t *testing.T) {
	b := newBench(t)
	f, _ := b.facts()
	_, err := b.api.Patch(t.Context(), "p", types.MergePatchType, []byte(`{"spec":{"to":["c3"]}}`), metav1.PatchOptions{})
	must(t, err)
	_, before := b.facts()
	f.Share = &clustermesh.Share{Policy: "p", Selected: 2}
	if got := b.work(f); len(got) > 0 {
		t.Errorf("%+v", got)
	}
	if _, now := b.facts(); now != before {
		t.Error("the changed policy has the status of what it was")
	}
}
