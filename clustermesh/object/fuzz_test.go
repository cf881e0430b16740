package object

import (
	"encoding/json"
	"reflect"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/record"
)

// decoded reads an object of a kind as an API server sends it: names and lengths are valid, the rest is what
// a user wrote. Nil is not an object of the kind.
func decoded(k Kind, version int, name string, text []byte) metav1.Object {
	v := k.Versions[version%len(k.Versions)]
	var o runtime.Object = &unstructured.Unstructured{}
	switch {
	case k.MetadataOnly:
		o = &metav1.PartialObjectMetadata{}
	case v.Object != nil:
		o = reflect.New(reflect.TypeOf(v.Object).Elem()).Interface().(runtime.Object)
	}
	if json.Unmarshal(text, o) != nil {
		return nil
	}
	m, is := o.(metav1.Object)
	if u, un := o.(*unstructured.Unstructured); !is || un && u.Object == nil {
		return nil
	}
	if m.SetName(name); !k.ClusterScoped {
		m.SetNamespace("shop")
	}
	return m
}

// FuzzKinds: whatever two objects say, of any kinds that strait reads, they are read, and what they mean for
// this cluster can be published.
func FuzzKinds(f *testing.F) {
	at := func(resource string) uint8 {
		for i, k := range Kinds {
			if k.Resource == resource {
				return uint8(i)
			}
		}
		f.Fatalf("no kind %s", resource)
		return 0
	}
	f.Add(at(NodeResource), at(SliceResource), uint8(0),
		[]byte(`{"metadata": {"annotations": {"strait.io/prefixes": "10.1.1.0/24", "strait.io/cluster-ips": "10.96.0.0/12"}},
			"spec": {"podCIDRs": ["10.1.0.0/24", "fd00::/64"]}, "status": {"addresses": [{"type": "InternalIP", "address": "192.0.2.1"}]}}`),
		[]byte(`{"metadata": {"labels": {"kubernetes.io/service-name": "a"}}, "addressType": "IPv4", "ports": [{"name": "http", "port": 80}],
			"endpoints": [{"addresses": ["10.1.0.7"], "nodeName": "a", "targetRef": {"kind": "Pod", "name": "p"}}]}`))
	f.Add(at(ServiceResource), at(ExportResource), uint8(0),
		[]byte(`{"metadata": {"annotations": {"service.strait.io/global": "true"}}, "spec": {"clusterIP": "10.96.0.9", "clusterIPs": ["10.96.0.9"], "ports": [{"port": 80}]}}`),
		[]byte(`{"spec": {"exportedLabels": {"a": "b"}}}`))
	for i := range Kinds { // each kind, with nothing in it
		f.Add(uint8(i), uint8(i), uint8(1), []byte(`{"metadata": {}, "spec": {}}`), []byte(`{"spec": null}`))
	}
	f.Fuzz(func(t *testing.T, one, two, version uint8, first, second []byte) {
		objs := Objects{Config: Config{Cluster: "east"}}
		for i, text := range [][]byte{first, second} {
			k := Kinds[int([]uint8{one, two}[i])%len(Kinds)]
			if o := decoded(k, int(version), "a", text); o != nil {
				if kept, ok := k.Keep(o, ""); ok && kept != nil {
					objs.Insert(kept)
				}
			}
		}
		l := Local(objs)
		for _, n := range l.Nodes {
			content := clustermesh.Content{Endpoints: l.Endpoints, Exports: l.Exports, Globals: l.Globals, Mirrors: l.Mirrors}
			record.Usable(clustermesh.Origin{Cluster: "east", Node: n.Name}, content)
		}
	})
}
