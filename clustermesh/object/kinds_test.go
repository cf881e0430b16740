package object

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/policy"
)

// whole are objects as an API server sends them, by resource. A new kind needs objects here: see
// TestWholeKinds.
func whole() map[string][]runtime.Object {
	some := metav1.ObjectMeta{Namespace: "default", Name: "serve", UID: "u"}
	named := func(namespace, name string) metav1.ObjectMeta {
		m := some
		m.Namespace, m.Name = namespace, name
		return m
	}
	alias := []runtime.Object{&metav1.PartialObjectMetadata{ObjectMeta: named("default", "other")}}
	ports := []corev1.ServicePort{{Name: "http", Port: 80}}
	return map[string][]runtime.Object{
		NodeResource: {&corev1.Node{ObjectMeta: named("", "n1"), Spec: corev1.NodeSpec{PodCIDRs: []string{"10.1.1.0/24"}}}},
		ServiceResource: {
			&corev1.Service{ObjectMeta: some, Spec: corev1.ServiceSpec{ClusterIP: "10.96.0.1", Ports: ports}},
			&corev1.Service{ObjectMeta: named("default", "derived-serve"), Spec: corev1.ServiceSpec{ClusterIP: "10.96.0.2", Ports: ports}},
		},
		SliceResource: {&discoveryv1.EndpointSlice{ObjectMeta: named("default", "serve-1"), AddressType: "IPv4",
			Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.1.1.10"}, NodeName: new("n1")}}}},
		ExportResource: {&mcsv1beta1.ServiceExport{ObjectMeta: some}},
		ImportResource: {&mcsv1beta1.ServiceImport{ObjectMeta: named("kube-system", "barred")}},
		NamespaceResource: {
			&metav1.PartialObjectMetadata{ObjectMeta: named("", "default")}, &metav1.PartialObjectMetadata{ObjectMeta: named("", clustermesh.DefaultNamespace)},
		},
		PodResource: {&corev1.Pod{ObjectMeta: named("default", "serve-1"), Status: corev1.PodStatus{Phase: corev1.PodRunning,
			PodIPs: []corev1.PodIP{{IP: "10.1.1.10"}}}}},
		PolicyResource: {&policy.Policy{ObjectMeta: named("", "some"), Spec: policy.Spec{
			From: []string{"*"}, To: []string{"*"}, Select: []policy.Term{{Names: []string{".*"}}},
		}}},
		KarmadaResource:      {karmada(map[string]any{"types": []any{"CrossCluster"}})},
		MultiServiceResource: {multiService(selecting)}, MultiIngressResource: {multiIngress(backend("cart", int64(80)))},
		GKEExportResource: alias,
		KEPExportResource: alias,
		KEPImportResource: {&metav1.PartialObjectMetadata{ObjectMeta: named("kube-system", "barred")}},
		PropertyResource: {&unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": clusterID},
			"spec": map[string]any{"value": "us-east"}}}},
	}
}

// TestWholeKinds: the tests below see every kind, and something is kept of each.
func TestWholeKinds(t *testing.T) {
	all := whole()
	for _, k := range Kinds {
		if len(all[k.Resource]) == 0 {
			t.Errorf("no object of %s", k.Resource)
		}
		for _, o := range all[k.Resource] {
			if kept, ok := k.Keep(o, "n1"); !ok {
				t.Errorf("a %T is not of %s", o, k.Resource)
			} else if again, ok := k.Keep(kept, "n1"); kept != nil && (!ok || again != kept) {
				t.Errorf("%s: of what was kept, %v is kept", k.Resource, again)
			}
		}
	}
}

// marks are the labels and annotations of the objects of a resource, in the order of whole.
type marks map[string][]mark

type mark struct{ labels, annotations map[string]string }

// meaning is all that is read of objects.
type meaning struct {
	Local    clustermesh.Local
	Pods     Pods
	Identity Identity
	GKE      GKE
}

// read reads objects that carry marks by the rows of a table. Without trimming it reads them with
// all labels and annotations.
func read(table []Kind, m marks, trimmed bool) meaning {
	objs := Objects{All: map[string]bool{}, Config: Config{Tunnels: true}}
	all := whole()
	for _, k := range table {
		objs.All[k.Resource] = true
		for i, o := range all[k.Resource] {
			meta := o.(metav1.Object)
			meta.SetLabels(maps.Clone(m[k.Resource][i].labels))
			meta.SetAnnotations(maps.Clone(m[k.Resource][i].annotations))
			kept, ok := k.Versions[0].keep(meta, "")
			if trimmed {
				kept, ok = k.Keep(o, "")
			}
			if !ok {
				panic(k.Resource)
			}
			objs.Insert(kept)
		}
	}
	return meaning{Local(objs), ReadPods(objs), ReadIdentity(objs, "n1"), ReadGKE(objs)}
}

// values are what labels and annotations may say that mean something.
var values = []string{"", "true", "false", "local", "remote", "x", "serve", ManagedBy, SliceManager, "10.9.1.0/24", `{"default":{"mode":"shared"}}`}

// randomMarks gives each object some of the keys of its row.
func randomMarks(random *rand.Rand) marks {
	some := func(keys []string) map[string]string {
		out := map[string]string{}
		for _, key := range keys {
			if random.IntN(2) == 0 {
				out[key] = values[random.IntN(len(values))]
			}
		}
		return out
	}
	m, all := marks{}, whole()
	for _, k := range Kinds {
		for range all[k.Resource] {
			m[k.Resource] = append(m[k.Resource], mark{some(k.Labels), some(k.Annotations)})
		}
	}
	return m
}

// TestKeptMeansTheSame: what is kept of objects means what the objects mean, whatever else they
// carry. A label or annotation that is read and not in its kind's row fails it.
func TestKeptMeansTheSame(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	keys := candidates(t)
	for range 2000 {
		m := randomMarks(random)
		for _, k := range Kinds {
			for _, o := range m[k.Resource] {
				for _, key := range keys {
					if random.IntN(8) == 0 { // few, because some keys make an object mean nothing
						o.labels[key], o.annotations[key] = values[random.IntN(len(values))], values[random.IntN(len(values))]
					}
				}
			}
		}
		if !reflect.DeepEqual(read(Kinds, m, false), read(Kinds, m, true)) {
			t.Fatalf("what is kept of objects means something else than the objects. Is one of these read, and not in its row?\n%s",
				strings.Join(culprits(m, keys), "\n"))
		}
	}
}

// culprits are the keys whose loss changes what objects mean, and that are not kept.
func culprits(m marks, keys []string) (out []string) {
	full := read(Kinds, m, false)
	for _, k := range Kinds {
		for i, o := range m[k.Resource] {
			for _, key := range keys {
				lesser := mark{maps.Clone(o.labels), maps.Clone(o.annotations)}
				if !slices.Contains(k.Labels, key) {
					delete(lesser.labels, key)
				}
				if !slices.Contains(k.Annotations, key) {
					delete(lesser.annotations, key)
				}
				m[k.Resource][i] = lesser
				if !reflect.DeepEqual(read(Kinds, m, false), full) {
					out = append(out, k.Resource+": "+key)
				}
				m[k.Resource][i] = o
			}
		}
	}
	return out
}

// TestEveryKeyCounts: each label and annotation of a row means something, and to lose it changes
// that.
func TestEveryKeyCounts(t *testing.T) {
	for i, k := range Kinds {
		for _, key := range slices.Concat(k.Labels, k.Annotations) {
			without := slices.Clone(Kinds)
			lose := func(keys []string) []string {
				return slices.DeleteFunc(slices.Clone(keys), func(other string) bool { return other == key })
			}
			without[i].Labels, without[i].Annotations = lose(k.Labels), lose(k.Annotations)
			random := rand.New(rand.NewPCG(3, 4))
			if !slices.ContainsFunc(make([]struct{}, 5000), func(struct{}) bool {
				m := randomMarks(random)
				return !reflect.DeepEqual(read(Kinds, m, true), read(without, m, true))
			}) {
				t.Errorf("%s: %s means nothing: remove it from the row, or give the objects of this test what it needs", k.Resource, key)
			}
		}
	}
}

// candidates are the keys of all rows, and whatever looks like one in the source of this package and of
// clustermesh.
func candidates(t *testing.T) []string {
	out := map[string]bool{}
	for _, k := range Kinds {
		for _, key := range slices.Concat(k.Labels, k.Annotations) {
			out[key] = true
		}
	}
	files, err1 := filepath.Glob("*.go")
	shared, err2 := filepath.Glob("../*.go")
	if err := errors.Join(err1, err2); err != nil || len(files) == 0 || len(shared) == 0 {
		t.Fatal(files, shared, err)
	}
	for _, f := range append(files, shared...) {
		syntax, err := parser.ParseFile(token.NewFileSet(), f, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(syntax, func(n ast.Node) bool {
			if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING && !strings.HasSuffix(f, "_test.go") {
				if s, err := strconv.Unquote(l.Value); err == nil && strings.Contains(s, "/") && len(validation.IsQualifiedName(s)) == 0 {
					out[s] = true
				}
			}
			return true
		})
	}
	return slices.Sorted(maps.Keys(out))
}

// TestKeysAreDocumented: a user finds every annotation of strait's own.
func TestKeysAreDocumented(t *testing.T) {
	var text strings.Builder
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatal(pages, err)
	}
	for _, p := range pages {
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(b)
	}
	own := regexp.MustCompile(`(^|\.)strait\.io/`)
	for _, k := range Kinds {
		for _, key := range k.Annotations {
			if own.MatchString(key) && !strings.Contains(text.String(), key) {
				t.Errorf("%s: annotation %s is in no page of docs", k.Name, key)
			}
		}
	}
}
