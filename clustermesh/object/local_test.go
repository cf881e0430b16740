package object

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Cilium's annotation of a Namespace keeps its Services in the cluster: global ones and exports.
func TestLocalNamespace(t *testing.T) {
	const (
		global     = "warning: Service default/serve: metadata.annotations[service.cilium.io/global]: "
		exported   = "warning: ServiceExport default/serve: metadata: "
		local      = "namespace default is local by its annotation clustermesh.cilium.io/global"
		tryGlobal  = ": not global; delete the Service's annotation, or use another namespace"
		tryExport  = ": not exported; delete the ServiceExport, or export a Service of another namespace"
		namespace  = "Namespace default: metadata.annotations[clustermesh.cilium.io/global]: "
		unmarked   = "namespace default is not marked by the annotation clustermesh.cilium.io/global, and source.kubernetes.defaultGlobalNamespace is false"
		notBoolean = `"no" is neither true nor false: counts as false; write "true" or "false"`
	)
	for _, c := range []struct {
		what        string
		namespace   string
		annotations map[string]string
		byDefault   bool // local
		shared      bool
		problems    []string
	}{
		{what: "no annotation", namespace: "default", shared: true},
		{what: "true", namespace: "default", annotations: map[string]string{"clustermesh.cilium.io/global": "True"}, shared: true},
		{what: "false", namespace: "default", annotations: map[string]string{"clustermesh.cilium.io/global": "false"},
			problems: []string{global + local + tryGlobal, exported + local + tryExport}},
		{what: "another namespace", namespace: "other", annotations: map[string]string{"clustermesh.cilium.io/global": "false"}, shared: true},
		{what: "true, where the default is local", namespace: "default", annotations: map[string]string{"clustermesh.cilium.io/global": "true"}, byDefault: true, shared: true},
		{what: "no annotation, where the default is local", namespace: "default", byDefault: true,
			problems: []string{global + unmarked + tryGlobal, exported + unmarked + tryExport}},
		{what: "no such Namespace, where the default is local", namespace: "other", byDefault: true,
			problems: []string{global + unmarked + tryGlobal, exported + unmarked + tryExport}},
		{what: "no boolean", namespace: "default", annotations: map[string]string{"clustermesh.cilium.io/global": "no"},
			problems: []string{namespace + notBoolean, global + local + tryGlobal, exported + local + tryExport}},
	} {
		got := typed{
			Config:         Config{LocalByDefault: c.byDefault},
			Services:       []*corev1.Service{service(notes("service.cilium.io/global", "true"))},
			EndpointSlices: []*discoveryv1.EndpointSlice{endpointSlice(nil)},
			Exports:        []*serviceExport{export("default", "serve")},
			Namespaces:     []*metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{Name: c.namespace, Annotations: c.annotations}}},
		}.local()
		check(t, c.what, got, c.problems...)
		n := 0
		if c.shared {
			n = 1
		}
		if have := []int{len(got.Globals), len(got.Exports), len(got.Endpoints)}; !reflect.DeepEqual(have, []int{n, n, n}) {
			t.Errorf("%s: %v global, exported and endpoints, want %d of each", c.what, have, n)
		}
		if local := got.LocalNamespaces.Has("default"); local == c.shared {
			t.Errorf("%s: the namespace is local: %v", c.what, local)
		}
		if s := got.ExportStatus; len(s) != 1 || s[0].Exported != c.shared || !c.shared && s[0].Message == "" {
			t.Errorf("%s: export status %+v", c.what, s)
		}
	}
}

// A MultiClusterService of GKE in such a namespace is not exported either.
func TestLocalNamespace_MultiClusterService(t *testing.T) {
	for _, value := range []string{"true", "false"} {
		objs := Objects{Config: Config{Cluster: "east"}}
		objs.Insert(serviceFrom(derivedOf(derivedLabels)))
		objs.Insert(multiServiceFrom(multiService(selecting)))
		insert(&objs, NamespaceResource, []*metav1.PartialObjectMetadata{
			{ObjectMeta: metav1.ObjectMeta{Name: "shop", Annotations: map[string]string{"clustermesh.cilium.io/global": value}}},
		})
		got := Local(objs)
		if shared := value == "true"; (len(got.Exports) == 1) != shared || (len(got.Problems) == 0) != shared {
			t.Errorf("%s: exports %+v, problems %v", value, got.Exports, got.Problems)
		}
	}
}
