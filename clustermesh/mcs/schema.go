package mcs

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// API is what an API server serves of the MCS API. The zero value serves v1beta1 with all that strait
// writes.
type API struct {
	Imports, Exports Served
	// Foreign are the kinds of other API groups that are served, by name, such as OldExport.
	Foreign map[string]Served
}

// Served is one kind of the MCS API at an API server.
type Served struct {
	// Version is the best version that is served; empty means v1beta1.
	Version string
	// NoStatus: the version has no status subresource, so the status is part of the object.
	NoStatus bool

	schema *schema // nil keeps everything
}

// schema is the part of an OpenAPI v3 schema that decides what an API server keeps of an object.
type schema struct {
	Properties map[string]*schema `json:"properties"`
	// AdditionalProperties is a schema, true or false; empty is false for an object with Properties.
	AdditionalProperties json.RawMessage `json:"additionalProperties"`
	Items                *schema         `json:"items"`
	Required             []string        `json:"required"`
	MaxItems             *int            `json:"maxItems"`
	Enum                 []any           `json:"enum"`
	Preserve             bool            `json:"x-kubernetes-preserve-unknown-fields"`
}

// ReadServed reads what an OpenAPI v3 document of a group's version has of a kind, such as
// "ServiceImport" with the plural "serviceimports". It returns false if the kind is not in it.
func ReadServed(group, version, kind, plural string, document []byte) (Served, bool, error) {
	var doc struct {
		Paths      map[string]json.RawMessage `json:"paths"`
		Components struct {
			Schemas map[string]json.RawMessage `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(document, &doc); err != nil {
		return Served{}, false, fmt.Errorf("read OpenAPI document of %s: %w", group, err)
	}
	path := "/apis/" + group + "/" + version + "/namespaces/{namespace}/" + plural + "/{name}"
	if _, there := doc.Paths[path]; !there {
		return Served{}, false, nil
	}
	_, status := doc.Paths[path+"/status"]
	out := Served{Version: version, NoStatus: !status}
	for _, raw := range doc.Components.Schemas {
		var s struct {
			schema
			Kinds []struct{ Group, Version, Kind string } `json:"x-kubernetes-group-version-kind"`
		}
		if json.Unmarshal(raw, &s) != nil {
			continue // a schema of another kind, in words that this one does not use
		}
		for _, k := range s.Kinds {
			if k.Group == group && k.Version == version && k.Kind == kind {
				out.schema = &s.schema
			}
		}
	}
	if out.schema != nil && out.schema.keeps("spec", fullSpec) && out.schema.keeps("status", fullStatus) {
		out.schema = nil // nothing has to be compared, object by object
	}
	return out, true, nil
}

// keeps reports whether an object's part stays as it is. An export has no such spec, so a schema of
// exports is complete only with additional properties; exports are few.
func (s *schema) keeps(part string, full any) bool {
	p := s.Properties[part]
	if p == nil {
		return s.Preserve
	}
	kept, _ := p.prune(full)
	return reflect.DeepEqual(kept, full)
}

// Lacks returns the fields of an import that strait would write if the schema kept them whole, sorted.
func (s Served) Lacks() (out []string) {
	if s.schema == nil || s.schema.Preserve {
		return nil
	}
	for part, full := range map[string]any{"spec": fullSpec, "status": fullStatus} {
		var kept any
		if p := s.schema.Properties[part]; p != nil {
			kept, _ = p.prune(full)
		}
		have, _ := kept.(map[string]any)
		for field, value := range full.(map[string]any) {
			if !reflect.DeepEqual(have[field], value) {
				out = append(out, part+"."+field)
			}
		}
	}
	slices.Sort(out)
	return out
}

// fullSpec and fullStatus have all fields of an import that strait writes, with all values of those
// that have few.
var fullSpec, fullStatus = func() (spec, status any) {
	full := mcsv1beta1.ServiceImport{
		Spec: mcsv1beta1.ServiceImportSpec{
			Ports: []mcsv1beta1.ServicePort{
				{Name: "a", Protocol: corev1.ProtocolTCP, Port: 1, AppProtocol: new("http")}, {Name: "b", Protocol: corev1.ProtocolUDP, Port: 1},
				{Name: "c", Protocol: corev1.ProtocolSCTP, Port: 1},
			},
			IPs: []string{"10.96.0.1", "fd00::1"}, IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol},
			Type: mcsv1beta1.ClusterSetIP, InternalTrafficPolicy: new(corev1.ServiceInternalTrafficPolicyLocal),
			TrafficDistribution: new(corev1.ServiceTrafficDistributionPreferSameNode),
		},
		Status: mcsv1beta1.ServiceImportStatus{
			EndpointSliceObjects: mcsv1beta1.EndpointSliceObjectsPresent, Clusters: []mcsv1beta1.ClusterStatus{{Cluster: "c1"}, {Cluster: "c2"}},
			Conditions: []metav1.Condition{{Type: ready, Status: metav1.ConditionUnknown, ObservedGeneration: 1, Reason: ready, Message: "m", LastTransitionTime: metav1.Unix(1, 0)}},
		},
	}
	full.Spec.SessionAffinity, full.Spec.SessionAffinityConfig = affinity(1)
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&full)
	if err != nil {
		panic(err) // a constant
	}
	return fields["spec"], fields["status"]
}()

// prune removes from an object what the API server would drop from it or refuse: unknown fields,
// elements beyond maxItems, and values that are not in an enum. Metadata stays. It returns a new
// object if there is anything to remove.
func prune[T any](s Served, o *T) *T {
	if s.schema == nil && !s.NoStatus {
		return o
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return o // it is one of our own types, which encode
	}
	for _, part := range []string{"spec", "status"} {
		if s.schema == nil || s.schema.Preserve {
			break
		}
		if p, known := s.schema.Properties[part]; known && p != nil {
			if kept, keep := p.prune(fields[part]); keep {
				fields[part] = kept
				continue
			}
		}
		delete(fields, part)
	}
	if s.NoStatus {
		withoutGeneration(fields)
	}
	out := new(T)
	if runtime.DefaultUnstructuredConverter.FromUnstructured(fields, out) != nil {
		return o
	}
	return out
}

// withoutGeneration removes observedGeneration from conditions. Without a status subresource, writing
// the status makes a new generation, which would have to be written again, and so on.
func withoutGeneration(fields map[string]any) {
	status, _ := fields["status"].(map[string]any)
	conditions, _ := status["conditions"].([]any)
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok {
			delete(c, "observedGeneration")
		}
	}
}

// prune returns what is kept of a value, and false if nothing is.
func (s *schema) prune(value any) (any, bool) {
	if value == nil {
		return nil, false
	}
	if len(s.Enum) > 0 && !slices.ContainsFunc(s.Enum, func(e any) bool { return fmt.Sprint(e) == fmt.Sprint(value) }) {
		return nil, false
	}
	switch v := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, field := range v {
			of := s.field(key)
			if of == nil {
				continue
			}
			if kept, keep := of.prune(field); keep {
				out[key] = kept
			}
		}
		return out, true
	case []any:
		out := make([]any, 0, len(v))
		for _, item := range v {
			kept, keep := item, true
			if s.Items != nil {
				kept, keep = s.Items.prune(item)
				keep = keep && s.Items.complete(item, kept)
			}
			if keep && (s.MaxItems == nil || len(out) < *s.MaxItems) {
				out = append(out, kept)
			}
		}
		return out, true
	}
	return value, true
}

// complete reports whether what is kept of a value still has its required fields. Without one of them,
// such as a condition's type that is not in the enum, the API server would refuse the whole object.
func (s *schema) complete(value, kept any) bool {
	was, _ := value.(map[string]any)
	is, _ := kept.(map[string]any)
	return !slices.ContainsFunc(s.Required, func(field string) bool { return was[field] != nil && is[field] == nil })
}

// everything is the schema that keeps what it is given.
var everything = &schema{Preserve: true}

// field returns the schema of a field of an object, nil if the object has no such field.
func (s *schema) field(key string) *schema {
	if f := s.Properties[key]; f != nil {
		return f
	}
	more := strings.TrimSpace(string(s.AdditionalProperties))
	if f := new(schema); strings.HasPrefix(more, "{") && json.Unmarshal(s.AdditionalProperties, f) == nil {
		return f
	}
	if s.Preserve || more == "true" {
		return everything
	}
	return nil
}
