package object

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"strait.io/strait/clustermesh/policy"
)

// karmadaKind is how Problems and statuses name Karmada's MultiClusterService.
const karmadaKind = "MultiClusterService"

// karmadaFrom reads a MultiClusterService of networking.karmada.io/v1alpha1 as what it means: a policy
// that joins the one Service of its name. Without providers, or consumers, all clusters are. The
// deprecated names of both lists are read too.
func karmadaFrom(in *unstructured.Unstructured) *Policy {
	clusters := func(now, before string) (out []string) {
		list, _, _ := unstructured.NestedSlice(in.Object, "spec", now)
		for _, c := range list {
			if m, ok := c.(map[string]any); ok {
				name, _ := m["name"].(string)
				out = append(out, name)
			}
		}
		if len(out) == 0 {
			out, _, _ = unstructured.NestedStringSlice(in.Object, "spec", before)
		}
		if len(out) == 0 {
			return []string{"*"}
		}
		return out
	}
	same := policy.Policy{TypeMeta: policy.Type, Spec: policy.Spec{
		From: clusters("providerClusters", "serviceProvisionClusters"), To: clusters("consumerClusters", "serviceConsumptionClusters"),
		As: policy.Join, Select: []policy.Term{{Namespaces: []string{in.GetNamespace()}, Names: []string{in.GetName()}}},
	}}
	same.Name = in.GetName()
	out := policyFrom(&same)
	out.ID, out.kind, out.created = idOf(in), karmadaKind, createdAt(in)
	for _, m := range out.mistakes {
		m.Field = strings.NewReplacer("spec.from", "spec.providerClusters", "spec.to", "spec.consumerClusters", "spec.select[0].namespaces[0]", "metadata.namespace").Replace(m.Field)
	}
	if types, _, _ := unstructured.NestedStringSlice(in.Object, "spec", "types"); !slices.Contains(types, "CrossCluster") {
		out.mistakes = append(out.mistakes, field.NotSupported(field.NewPath("spec", "types"), strings.Join(types, ", "), []string{"CrossCluster"}))
	}
	if ports, _, _ := unstructured.NestedSlice(in.Object, "spec", "ports"); len(ports) > 0 {
		out.ports = true
	}
	return out
}
