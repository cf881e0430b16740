package write

import (
	"errors"
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/object"
	"strait.io/strait/clustermesh/written"
)

// engine writes to a fake.
func engine(t *testing.T, leading func() bool) (*Engine, *fake.FakeDynamicClient) {
	t.Helper()
	e, err := New(Config{REST: &rest.Config{Host: "http://127.0.0.1:1"}, Leading: leading})
	if err != nil {
		t.Fatal(err)
	}
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{})
	e.Dynamic = client
	return e, client
}

func derived(name string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: name, Labels: map[string]string{object.LabelManagedBy: object.ManagedBy, object.LabelServiceImport: name},
	}}
}

// TestDo: each write is counted by what it was and how it ended, by whichever writer; what may not be
// written is not sent, and not counted.
func TestDo(t *testing.T) {
	leads := true
	e, client := engine(t, func() bool { return leads })
	client.PrependReactor("create", "services", func(a clienttesting.Action) (bool, runtime.Object, error) {
		o, _ := a.(clienttesting.CreateAction).GetObject().(metav1.Object)
		if o.GetName() == "refused" {
			return true, nil, apierrors.NewForbidden(a.GetResource().GroupResource(), o.GetName(), errors.New("no"))
		}
		return false, nil, nil
	})
	imports, mirrors := e.Part(written.Imports), e.Part(written.Mirrors)
	create := func(p *Part, s *corev1.Service) error {
		_, err := p.Do(t.Context(), written.Op{Verb: written.Create, Kind: written.Service, Object: s})
		return err
	}
	if err := errors.Join(create(imports, derived("a")), create(mirrors, derived("b"))); err != nil {
		t.Fatal(err)
	}
	if err := create(mirrors, derived("refused")); !apierrors.IsForbidden(err) {
		t.Errorf("refused: %v", err)
	}
	if err := create(imports, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "without-labels"}}); err == nil {
		t.Error("what strait uninstall would leave is written")
	}
	leads = false
	if err := create(imports, derived("c")); !errors.Is(err, ErrStopped) {
		t.Errorf("while another leads: %v", err)
	}
	want := map[Write]uint64{{Verb: written.Create, Kind: written.Service}: 2, {Verb: written.Create, Kind: written.Service, Failed: true}: 1}
	if got := e.Writes(); !maps.Equal(got, want) {
		t.Errorf("counted %v, want %v", got, want)
	}
	if n := len(client.Actions()); n != 3 {
		t.Errorf("%d requests, want 3", n)
	}
}

// TestReport: Problems are kept for each writer and subject, until the writer's term ends.
func TestReport(t *testing.T) {
	e, _ := engine(t, nil)
	imports, mirrors := e.Part(written.Imports), e.Part(written.Mirrors)
	about := func(object string) []clustermesh.Problem { return []clustermesh.Problem{{Object: object}} }
	imports.Report("a", about("1"))
	imports.Report("b", about("2"))
	mirrors.Report("a", about("3"))
	objects := func(ps []clustermesh.Problem) (out []string) {
		for _, p := range ps {
			out = append(out, p.Object)
		}
		slices.Sort(out)
		return out
	}
	imports.Report("b", nil)
	if got := objects(e.Problems()); !slices.Equal(got, []string{"1", "3"}) {
		t.Errorf("all: %v", got)
	}
	if got := objects(mirrors.Problems()); !slices.Equal(got, []string{"3"}) {
		t.Errorf("of mirrors: %v", got)
	}
	imports.Forget()
	if got := objects(e.Problems()); !slices.Equal(got, []string{"3"}) {
		t.Errorf("after a term: %v", got)
	}
}
