package kube

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/object"
	"strait.io/strait/internal/testutil"
)

const scaleServices, scaleEndpoints, scaleNodes = 10_000, 10, 100

// filled is a Source that holds the objects of scaleObjects.
func filled() *Source {
	s := New(Config{Node: "node-7", Client: idle()})
	all := scaleObjects(scaleServices)
	for _, k := range object.Kinds {
		if err := s.watches[k.Resource].Replace(sent(k, all[k.Resource]), "1"); err != nil {
			panic(err)
		}
	}
	return s
}

// scaleObjects are, by resource, what a cluster has of so many exported Services with 10 endpoints each on 100 nodes: those, and
// what strait writes for their imports.
func scaleObjects(count int) map[string][]any {
	all := map[string][]any{}
	for i := range scaleNodes {
		all[object.NodeResource] = append(all[object.NodeResource], &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("node-", i)},
			Status: corev1.NodeStatus{Images: make([]corev1.ContainerImage, 50),
				Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: fmt.Sprint("192.0.2.", i+1)}}}})
	}
	for i := range count {
		name := fmt.Sprint("service-", i)
		all[object.ServiceResource] = append(all[object.ServiceResource], scaleService(i, scaleMeta(name, nil)), scaleService(i+1<<16, scaleMeta("derived-"+name,
			map[string]string{object.LabelManagedBy: object.ManagedBy, object.LabelServiceImport: name})))
		all[object.ExportResource] = append(all[object.ExportResource], &mcsv1beta1.ServiceExport{ObjectMeta: scaleMeta(name, nil),
			Status: mcsv1beta1.ServiceExportStatus{Conditions: make([]metav1.Condition, 3)}})
		all[object.ImportResource] = append(all[object.ImportResource], &mcsv1beta1.ServiceImport{ObjectMeta: scaleMeta(name, map[string]string{object.LabelManagedBy: object.ManagedBy}),
			Spec:   mcsv1beta1.ServiceImportSpec{Ports: make([]mcsv1beta1.ServicePort, 1), IPs: []string{scaleIP(i)}},
			Status: mcsv1beta1.ServiceImportStatus{Conditions: make([]metav1.Condition, 1)}})
		all[object.SliceResource] = append(all[object.SliceResource], scaleSlice(i, name))
	}
	return all
}

// sent are the objects as an API server sends them: those that are asked for, each in memory of its own.
func sent(k object.Kind, all []any) (out []any) {
	selector, err := labels.Parse(k.Selector)
	if err != nil {
		panic(err)
	}
	for _, o := range all {
		if !selector.Matches(labels.Set(o.(metav1.Object).GetLabels())) {
			continue
		}
		text, err := json.Marshal(o)
		if err != nil {
			panic(err)
		}
		own := reflect.New(reflect.TypeOf(o).Elem()).Interface()
		if err := json.Unmarshal(text, own); err != nil {
			panic(err)
		}
		out = append(out, own)
	}
	return out
}

// scaleMeta is the metadata of an object that a user applied; of those with labels, that strait did.
func scaleMeta(name string, labels map[string]string) metav1.ObjectMeta {
	const uid = "0f8fad5b-d9cb-469f-a165-70867728950e"
	m := metav1.ObjectMeta{Namespace: "default", Name: name, UID: uid, ResourceVersion: "12345678", CreationTimestamp: metav1.Unix(1700000000, 0), Labels: labels,
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl", FieldsV1: metav1.NewFieldsV1(`{"f:spec":"` + strings.Repeat("x", 600) + `"}`)}},
		Annotations:   map[string]string{"kubectl.kubernetes.io/last-applied-configuration": strings.Repeat("x", 500)}}
	if labels != nil {
		m.Annotations = map[string]string{"multicluster.kubernetes.io/derived-service": "derived-" + name}
		m.OwnerReferences = []metav1.OwnerReference{{APIVersion: "multicluster.x-k8s.io/v1beta1", Kind: "ServiceImport", Name: name, UID: uid}}
	}
	return m
}

func scaleIP(i int) string { return fmt.Sprintf("10.%d.%d.%d", 96+i>>16, i>>8&255, i&255) }

// scaleService is a Service as an API server completes it.
func scaleService(i int, m metav1.ObjectMeta) *corev1.Service {
	return &corev1.Service{ObjectMeta: m, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP,
		Ports:     []corev1.ServicePort{{Name: "http", Port: 80, Protocol: "TCP", TargetPort: intstr.FromInt32(80)}},
		ClusterIP: scaleIP(i), ClusterIPs: []string{scaleIP(i)}, SessionAffinity: corev1.ServiceAffinityNone,
		IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol}, IPFamilyPolicy: new(corev1.IPFamilyPolicySingleStack),
		InternalTrafficPolicy: new(corev1.ServiceInternalTrafficPolicyCluster)}}
}

func scaleSlice(i int, service string) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{ObjectMeta: scaleMeta(service+"-x7zt2", nil), AddressType: "IPv4",
		Ports: []discoveryv1.EndpointPort{{Name: new("http"), Port: new(int32(8080)), Protocol: new(corev1.ProtocolTCP)}}}
	s.Labels = map[string]string{discoveryv1.LabelServiceName: service, discoveryv1.LabelManagedBy: "endpointslice-controller.k8s.io"}
	for e := range scaleEndpoints {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{fmt.Sprintf("10.%d.%d.%d", e, i>>8, i&255)},
			NodeName: new(fmt.Sprint("node-", (i+e*10)%scaleNodes)), Zone: new("zone-1"),
			Conditions: discoveryv1.EndpointConditions{Ready: new(true), Serving: new(true), Terminating: new(false)},
			TargetRef:  &corev1.ObjectReference{Kind: "Pod", Name: fmt.Sprintf("%s-%d", service, e), Namespace: "default", UID: s.UID}})
	}
	return s
}

// TestSourceHeap bounds what the objects cost that a node keeps of a large cluster: a small part of what they take whole.
func TestSourceHeap(t *testing.T) {
	whole := testutil.Heap(func() any {
		var out []any
		all := scaleObjects(scaleServices / 10)
		for _, k := range object.Kinds {
			out = append(out, sent(k, all[k.Resource]))
		}
		return out
	}) * 10
	var k known
	kept := testutil.Heap(func() any {
		s := filled()
		k = s.gather(true, nil, nil)
		return s
	})
	t.Logf("%.1f MB for %d services with %d endpoints each, whose objects take %.1f whole: %.3f of them",
		kept/1e6, scaleServices, scaleEndpoints, whole/1e6, kept/whole)
	if kept > 0.08*whole {
		t.Error("more than 0.08 of the objects")
	}
	if len(k.objects.Exports) != scaleServices || len(k.objects.Allocations) != scaleServices || len(k.objects.Endpoints) != scaleServices*scaleEndpoints/scaleNodes {
		t.Errorf("%d exports, %d addresses, %d endpoints", len(k.objects.Exports), len(k.objects.Allocations), len(k.objects.Endpoints))
	}
	for _, e := range k.objects.Endpoints {
		if e.Node != clustermesh.NodeName("node-7") {
			t.Fatalf("endpoint of %s", e.Node)
		}
	}
}

// BenchmarkRead is what each change costs, at most four times a second.
func BenchmarkRead(b *testing.B) {
	s := filled()
	b.ReportAllocs()
	for b.Loop() {
		s.gather(true, nil, nil)
	}
}

// idle is a Client that no test uses.
func idle() Client {
	c, err := NewClient(&rest.Config{Host: "http://127.0.0.1:1"})
	if err != nil {
		panic(err)
	}
	return c
}
