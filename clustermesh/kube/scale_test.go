package kube

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"strait.io/strait/clustermesh"
)

const scaleServices, scaleEndpoints, scaleNodes = 10_000, 10, 100

// filled is a Source that holds 10,000 exported Services with 10 endpoints each on 100 nodes, as objects come
// from an API server.
func filled() *Source {
	s := New(Config{Node: "node-7", Client: idle()})
	w := func(name string, all []any) {
		if err := s.watches[name].Replace(all, "1"); err != nil {
			panic(err)
		}
	}
	var allNodes, allServices, allSlices, allExports []any
	for i := range scaleNodes {
		allNodes = append(allNodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("node-", i)},
			Status: corev1.NodeStatus{Images: make([]corev1.ContainerImage, 50),
				Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: fmt.Sprint("192.0.2.", i+1)}}}})
	}
	for i := range scaleServices {
		meta := metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("service-", i), UID: "0f8fad5b-d9cb-469f-a165-70867728950e",
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl", FieldsV1: metav1.NewFieldsV1(strings.Repeat("x", 600))}},
			Annotations:   map[string]string{"kubectl.kubernetes.io/last-applied-configuration": string(make([]byte, 500))}}
		ip := fmt.Sprintf("10.96.%d.%d", i>>8, i&255)
		allServices = append(allServices, &corev1.Service{ObjectMeta: *meta.DeepCopy(), Spec: corev1.ServiceSpec{
			Ports: []corev1.ServicePort{{Name: "http", Port: 80, Protocol: "TCP"}}, ClusterIP: ip, ClusterIPs: []string{ip}, IPFamilies: []corev1.IPFamily{"IPv4"}}})
		allExports = append(allExports, &mcsv1beta1.ServiceExport{ObjectMeta: *meta.DeepCopy()})
		slice := &discoveryv1.EndpointSlice{ObjectMeta: *meta.DeepCopy(), AddressType: "IPv4",
			Ports: []discoveryv1.EndpointPort{{Name: new("http"), Port: new(int32(8080)), Protocol: new(corev1.ProtocolTCP)}}}
		slice.Labels = map[string]string{discoveryv1.LabelServiceName: meta.Name}
		for e := range scaleEndpoints {
			slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{fmt.Sprintf("10.%d.%d.%d", e, i>>8, i&255)},
				NodeName: new(fmt.Sprint("node-", (i+e*10)%scaleNodes)), Zone: new("zone-1"),
				Conditions: discoveryv1.EndpointConditions{Ready: new(true), Serving: new(true), Terminating: new(false)},
				TargetRef:  &corev1.ObjectReference{Kind: "Pod", Name: fmt.Sprintf("service-%d-%d", i, e), Namespace: "default", UID: meta.UID}})
		}
		allSlices = append(allSlices, slice)
	}
	w(nodes, allNodes)
	w(services, allServices)
	w(endpointSlices, allSlices)
	w(serviceExports, allExports)
	return s
}

// TestMemory bounds what the objects cost that a node keeps of a large cluster. It is a part of the 150 MB
// that the daemon may take.
func TestMemory(t *testing.T) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	s := filled()
	k := s.gather(true)
	runtime.GC()
	runtime.ReadMemStats(&after)
	mb := float64(after.HeapAlloc-before.HeapAlloc) / 1e6
	t.Logf("%.1f MB for %d services with %d endpoints each", mb, scaleServices, scaleEndpoints)
	if mb > 25 {
		t.Error("more than 25 MB")
	}
	if len(k.local.Exports)+len(k.objects.Exports) != scaleServices || len(k.objects.Endpoints) != scaleServices*scaleEndpoints/scaleNodes {
		t.Errorf("%d exports, %d endpoints", len(k.objects.Exports), len(k.objects.Endpoints))
	}
	for _, e := range k.objects.Endpoints {
		if e.Node != clustermesh.NodeName("node-7") {
			t.Fatalf("endpoint of %s", e.Node)
		}
	}
	runtime.KeepAlive(s)
}

// BenchmarkRead is what each change costs, at most four times a second.
func BenchmarkRead(b *testing.B) {
	s := filled()
	b.ReportAllocs()
	for b.Loop() {
		s.gather(true)
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
