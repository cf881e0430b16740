package writer

import (
	"bytes"
	"compress/flate"
	"encoding/json"
	"io"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// packed is an object in compressed bytes, which are a tenth of what it is in memory. It is read when its service is
// looked at.
type packed struct {
	name    string
	uid     types.UID
	version string
	bytes   []byte
}

// phrases are what objects of strait's have in common; the most frequent come last. What an object has otherwise is
// packed too, and takes more bytes.
var phrases = []byte(`{"spec":{"ipFamilies":["IPv6","IPv4"],"sessionAffinity":"None","type":"Headless"},"status":{"conditions":[` +
	`{"type":"Conflict","status":"False","lastTransitionTime":"2026-01-01T00:00:00Z","reason":"NoConflicts","message":"All clusters agree."},` +
	`{"type":"Ready","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z","reason":"Exported","message":""},` +
	`{"type":"Valid","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z","reason":"Valid","message":""}]}}` +
	`{"metadata":{"name":"","namespace":"default","uid":"","resourceVersion":"","generation":1,"creationTimestamp":"2026-01-01T00:00:00Z",` +
	`"labels":{"app.kubernetes.io/managed-by":"strait"},"annotations":{"multicluster.kubernetes.io/derived-service":"derived-"},` +
	`"ownerReferences":[{"apiVersion":"multicluster.x-k8s.io/v1beta1","kind":"ServiceImport","name":"","uid":""}],` +
	`"managedFields":[{"manager":"strait","operation":"Apply","fieldsV1":{"f:metadata":{"f:annotations":` +
	`{"f:multicluster.kubernetes.io/derived-service":{}},"f:labels":{"f:app.kubernetes.io/managed-by":{}}}}}]},` +
	`"spec":{"ports":[{"name":"http","protocol":"TCP","port":80}],"ips":["10.96.0.1"],"type":"ClusterSetIP","sessionAffinity":"None"},` +
	`"status":{"clusters":[{"cluster":""}],"conditions":[{"type":"Ready","status":"True","observedGeneration":1,` +
	`"lastTransitionTime":"2026-01-01T00:00:00Z","reason":"Ready","message":""}]}}`)

// level is the fastest that heeds phrases.
const level = 2

// deflaters are *flate.Writer: one is a megabyte, of use to one object after another.
var deflaters = sync.Pool{New: func() any {
	w, _ := flate.NewWriterDict(io.Discard, level, phrases) // fails only for a level that there is not
	return w
}}

// inflaters are flate's readers, which are flate.Resetter too.
var inflaters = sync.Pool{New: func() any { return flate.NewReaderDict(bytes.NewReader(nil), phrases) }}

// pack writes an object. What came in bytes can be written so.
func pack(obj metav1.Object) packed {
	var plain []byte
	if binary, ok := obj.(interface{ Marshal() ([]byte, error) }); ok { // built-in kinds
		plain, _ = binary.Marshal()
	} else {
		plain, _ = json.Marshal(obj)
	}
	return packed{name: obj.GetName(), uid: obj.GetUID(), version: obj.GetResourceVersion(), bytes: deflate(plain)}
}

// deflate compresses. Writing to memory does not fail.
func deflate(plain []byte) []byte {
	var out bytes.Buffer
	w := deflaters.Get().(*flate.Writer)
	defer deflaters.Put(w)
	w.Reset(&out)
	_, _ = w.Write(plain)
	_ = w.Close()
	return bytes.Clone(out.Bytes())
}

// inflate is the inverse of deflate. Reading what that wrote does not fail.
func inflate(compressed []byte) []byte {
	r := inflaters.Get().(io.Reader)
	defer inflaters.Put(r)
	_ = r.(flate.Resetter).Reset(bytes.NewReader(compressed), phrases)
	plain, _ := io.ReadAll(r)
	return plain
}

// unpack reads an object that pack wrote; nil if there is none.
func unpack[T any](p packed) *T {
	if p.uid == "" {
		return nil
	}
	out, plain := new(T), inflate(p.bytes)
	if binary, ok := any(out).(interface{ Unmarshal([]byte) error }); ok {
		_ = binary.Unmarshal(plain)
	} else {
		_ = json.Unmarshal(plain, out)
	}
	return out
}
