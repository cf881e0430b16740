package writer

import (
	"bytes"
	"compress/flate"
	"encoding/json"
	"io"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"strait.io/strait/clustermesh/object"
)

// packed is an object in compressed form, a tenth of its size in memory. It is unpacked when its
// service is looked at.
type packed struct {
	identity
	bytes string // compressed; without name and identity
}

func (p packed) none() bool { return p.uid == uid{} }

// phrases is the compression dictionary: what strait's objects have in common, the most frequent
// last. Text that is not in it takes more bytes.
var phrases = append(example(), `{"spec":{"ipFamilies":["IPv6","IPv4"],"sessionAffinity":"None","type":"Headless"},"status":{"conditions":[`+
	`{"type":"Conflict","status":"False","lastTransitionTime":"2026-01-01T00:00:00Z","reason":"NoConflicts","message":"All clusters agree."},`+
	`{"type":"Ready","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z","reason":"Exported","message":""},`+
	`{"type":"Valid","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z","reason":"Valid","message":""}]}}`+
	`{"metadata":{"generation":1,"creationTimestamp":"2026-01-01T00:00:00Z",`+
	`"labels":{"app.kubernetes.io/managed-by":"strait"},"annotations":{"multicluster.kubernetes.io/derived-service":"derived-"},`+
	`"managedFields":[{"manager":"strait","operation":"Apply","fieldsV1":{"f:metadata":{"f:annotations":`+
	`{"f:multicluster.kubernetes.io/derived-service":{}},"f:labels":{"f:app.kubernetes.io/managed-by":{}}}}}]},`+
	`"spec":{"ports":[{"name":"http","protocol":"TCP","port":80}],"ips":["10.96.0.1"],"type":"ClusterSetIP","sessionAffinity":"None"},`+
	`"status":{"clusters":[{"cluster":""}],"conditions":[{"type":"Ready","status":"True","observedGeneration":1,`+
	`"lastTransitionTime":"2026-01-01T00:00:00Z","reason":"Ready","message":""}]}}`...)

// example returns a typical derived Service in protobuf, with the fields that API servers set.
func example() []byte {
	const ip = "10.96.0.1"
	out, _ := (&corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Labels:          map[string]string{object.LabelManagedBy: object.ManagedBy, object.LabelServiceImport: ""},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: mcsv1beta1.GroupVersion.String(), Kind: "ServiceImport", Name: "derived-"}},
			ManagedFields:   created,
		},
		Spec: corev1.ServiceSpec{
			Ports: []corev1.ServicePort{{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80, TargetPort: intstr.FromInt32(80)}}, Type: corev1.ServiceTypeClusterIP,
			ClusterIP: ip, ClusterIPs: []string{ip}, SessionAffinity: corev1.ServiceAffinityNone, IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol},
			IPFamilyPolicy: new(corev1.IPFamilyPolicySingleStack), InternalTrafficPolicy: new(corev1.ServiceInternalTrafficPolicyCluster),
		},
	}).Marshal()
	return out
}

// level is the fastest compression level that uses the dictionary.
const level = 2

// deflaters holds values of type *flate.Writer. Each takes a megabyte, so they are reused.
var deflaters = sync.Pool{New: func() any {
	w, _ := flate.NewWriterDict(io.Discard, level, phrases) // fails only if the level is invalid
	return w
}}

// inflaters holds flate's readers, which also implement flate.Resetter.
var inflaters = sync.Pool{New: func() any { return flate.NewReaderDict(bytes.NewReader(nil), phrases) }}

// pack compresses an object. Objects decoded from bytes always encode again.
func pack[T any](obj *T) packed {
	short := *obj
	meta := any(&short).(metav1.Object)
	id := identityOf(meta)
	setMeta(meta, "", "", identity{})
	var plain []byte
	if binary, ok := meta.(interface{ Marshal() ([]byte, error) }); ok { // built-in kinds
		plain, _ = binary.Marshal()
	} else {
		plain, _ = json.Marshal(meta)
	}
	return packed{id, deflate(plain)}
}

func setMeta(obj metav1.Object, namespace, name string, id identity) {
	obj.SetNamespace(namespace)
	obj.SetName(name)
	obj.SetUID(id.uid.UID())
	obj.SetResourceVersion(id.version.String())
}

// deflate compresses. Writing to memory does not fail.
func deflate(plain []byte) string {
	var out bytes.Buffer
	w := deflaters.Get().(*flate.Writer)
	defer deflaters.Put(w)
	w.Reset(&out)
	_, _ = w.Write(plain)
	_ = w.Close()
	return out.String()
}

// inflate is the inverse of deflate. Reading what deflate wrote does not fail.
func inflate(compressed string) []byte {
	r := inflaters.Get().(io.Reader)
	defer inflaters.Put(r)
	_ = r.(flate.Resetter).Reset(strings.NewReader(compressed), phrases)
	plain, _ := io.ReadAll(r)
	return plain
}

// unpack returns the object that pack compressed, with its namespace and name set again; nil if p
// is empty.
func unpack[T any](p packed, namespace, name string) *T {
	if p.none() {
		return nil
	}
	out, plain := new(T), inflate(p.bytes)
	if binary, ok := any(out).(interface{ Unmarshal([]byte) error }); ok {
		_ = binary.Unmarshal(plain)
	} else {
		_ = json.Unmarshal(plain, out)
	}
	setMeta(any(out).(metav1.Object), namespace, name, p.identity)
	return out
}
