package writer

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/object"
	"strait.io/strait/clustermesh/written"
	"strait.io/strait/internal/testutil"
)

// fields is an account of who wrote what, in memory of its own, as the API server gives it.
func fields(operation metav1.ManagedFieldsOperationType, subresource string) metav1.ManagedFieldsEntry {
	text := `{"f:metadata":{"f:annotations":{"f:multicluster.kubernetes.io/derived-service":{}},"f:labels":{"f:app.kubernetes.io/managed-by":{}}},"f:spec":{"f:ips":{},"f:ports":{"k:{\"port\":80}":{".":{},"f:port":{}}},"f:type":{}}}`
	return metav1.ManagedFieldsEntry{Manager: written.Manager, Operation: operation, Subresource: subresource, APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(text + " ")}
}

// ofImports gives put what a leader wrote for so many imports with 10 endpoints each.
func ofImports(imports int, put func(metav1.Object)) {
	condition := func(message string) metav1.Condition {
		return metav1.Condition{Type: "Ready", Status: "True", Reason: "Ready", Message: message + ".", LastTransitionTime: metav1.NewTime(time.Unix(1, 0))}
	}
	serial := 0
	meta := func(name string, labels map[string]string, owners ...metav1.OwnerReference) metav1.ObjectMeta {
		serial++
		return metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID(fmt.Sprintf("0f8fad5b-d9cb-469f-a165-%012x", serial*7919)), ResourceVersion: fmt.Sprint(serial),
			Labels: labels, Generation: 1, CreationTimestamp: metav1.NewTime(time.Unix(1_800_000_000+int64(serial), 0)), OwnerReferences: owners,
			ManagedFields: []metav1.ManagedFieldsEntry{fields(metav1.ManagedFieldsOperationApply, ""), fields(metav1.ManagedFieldsOperationApply, "status")}}
	}
	for i := range imports {
		name := fmt.Sprint("service-", i)
		own := &mcsv1beta1.ServiceImport{ObjectMeta: meta(name, map[string]string{object.LabelManagedBy: object.ManagedBy}),
			Spec:   mcsv1beta1.ServiceImportSpec{Type: "ClusterSetIP", IPs: []string{"10.96.0.1"}, Ports: []mcsv1beta1.ServicePort{{Name: "http", Protocol: "TCP", Port: 80}}},
			Status: mcsv1beta1.ServiceImportStatus{Clusters: []mcsv1beta1.ClusterStatus{{Cluster: "c1"}}, Conditions: []metav1.Condition{condition("Imported from c1")}}}
		owner := metav1.OwnerReference{APIVersion: "multicluster.x-k8s.io/v1beta1", Kind: "ServiceImport", Name: name, UID: types.UID(strings.Clone(string(own.UID)))}
		put(own)
		put(&mcsv1beta1.ServiceExport{ObjectMeta: meta(name, nil),
			Status: mcsv1beta1.ServiceExportStatus{Conditions: []metav1.Condition{condition("a"), condition("b"), condition("c")}}})
		service := &corev1.Service{ObjectMeta: meta("derived-"+name, map[string]string{object.LabelManagedBy: object.ManagedBy, object.LabelServiceImport: name}, owner),
			Spec: corev1.ServiceSpec{ClusterIP: "10.96.0.1", ClusterIPs: []string{"10.96.0.1"}, Ports: []corev1.ServicePort{{Name: "http", Protocol: "TCP", Port: 80}}}}
		service.ManagedFields = []metav1.ManagedFieldsEntry{fields(metav1.ManagedFieldsOperationUpdate, "")}
		put(service)
		for _, labels := range []map[string]string{
			{mcsv1beta1.LabelServiceName: name, mcsv1beta1.LabelSourceCluster: "c1", discoveryv1.LabelManagedBy: object.SliceManager},
			{discoveryv1.LabelServiceName: "derived-" + name, object.LabelServiceImport: name, mcsv1beta1.LabelSourceCluster: "c1", discoveryv1.LabelManagedBy: object.SliceManager},
		} {
			slice := &discoveryv1.EndpointSlice{ObjectMeta: meta(fmt.Sprint(name, "-", len(labels), labels[mcsv1beta1.LabelSourceCluster]), labels, owner), AddressType: "IPv4",
				Ports: []discoveryv1.EndpointPort{{Name: new("http"), Port: new(int32(8080)), Protocol: new(corev1.ProtocolTCP)}}}
			for e := range 10 {
				slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{fmt.Sprintf("10.%d.%d.%d", e, i>>8, i&255)}, Zone: new("zone-1"),
					NodeName: new(fmt.Sprint("node-", e)), Conditions: discoveryv1.EndpointConditions{Ready: new(true), Serving: new(true), Terminating: new(false)}})
			}
			put(slice)
		}
	}
}

// TestStoreHeap bounds what a leader keeps of the objects that it wrote for 10,000 imports: a small part of what they take
// whole.
func TestStoreHeap(t *testing.T) {
	const imports = 10_000
	whole := testutil.Heap(func() any {
		var all []metav1.Object
		ofImports(imports/10, func(o metav1.Object) { all = append(all, o) })
		return all
	}) * 10
	var s *store
	kept := testutil.Heap(func() any {
		s = newStore()
		ofImports(imports, func(o metav1.Object) {
			trim(o)
			s.put(o)
		})
		return s
	})
	t.Logf("%.1f MB for %d imports, whose objects take %.1f whole: %.3f of them", kept/1e6, imports, whole/1e6, kept/whole)
	if kept > 0.12*whole {
		t.Error("more than 0.12 of the objects")
	}
	if h := s.have(clustermesh.ServiceName{Namespace: "team", Name: "service-77"}); h.Import == nil || h.Export == nil || len(h.Services) != 1 || len(h.Slices) != 2 {
		t.Errorf("of one service there is %+v", h)
	}
}
