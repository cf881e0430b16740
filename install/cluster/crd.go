package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
)

// applyForeign handles a CRD that strait did not install. It stays as it is, unless UpgradeCRDs is
// set and the chart's CRD serves versions that it lacks. An upgraded CRD stays its owner's: it does
// not get the labels by which uninstall finds what is strait's.
func (c *Cluster) applyForeign(ctx context.Context, client dynamic.ResourceInterface, have, want *unstructured.Unstructured, dryRun bool) (Change, error) {
	kept := change("kept", want)
	kept.Why = "strait did not install it"
	served, adds, loses := versions(have, want)
	if len(adds) == 0 {
		return kept, nil
	}
	what := fmt.Sprintf("it serves only %s, which strait reads and writes", strings.Join(served, ", "))
	switch {
	case len(loses) > 0:
		kept.Why = fmt.Sprintf("strait did not install it, and it cannot be upgraded: strait's has no %s", strings.Join(loses, ", "))
		return kept, nil
	case !c.UpgradeCRDs:
		kept.Why = fmt.Sprintf("%s; --upgrade-crds adds %s", what, strings.Join(adds, ", "))
		return kept, nil
	}
	want = want.DeepCopy()
	labels := want.GetLabels()
	maps.DeleteFunc(labels, func(key, _ string) bool {
		return strings.HasPrefix(key, "app.kubernetes.io/") || strings.HasPrefix(key, "helm.sh/")
	})
	want.SetLabels(labels)
	options := metav1.ApplyOptions{FieldManager: Manager, Force: true}
	if dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	if _, err := client.Apply(ctx, want.GetName(), want, options); err != nil {
		return Change{}, err
	}
	done := change("changed", want)
	done.Why = fmt.Sprintf("upgraded: adds %s to %s", strings.Join(adds, ", "), strings.Join(served, ", "))
	return done, nil
}

// versions compares two CRDs: which versions the first serves, which the second would add to them,
// and which the first serves or has objects stored in that the second does not serve.
func versions(have, want *unstructured.Unstructured) (served, adds, loses []string) {
	served = servedBy(have)
	ours := servedBy(want)
	stored, _, _ := unstructured.NestedStringSlice(have.Object, "status", "storedVersions")
	for _, v := range ours {
		if !slices.Contains(served, v) {
			adds = append(adds, v)
		}
	}
	for _, v := range slices.Concat(served, stored) {
		if !slices.Contains(ours, v) && !slices.Contains(loses, v) {
			loses = append(loses, v)
		}
	}
	return served, adds, loses
}

func servedBy(crd *unstructured.Unstructured) (out []string) {
	list, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, v := range list {
		if v, ok := v.(map[string]any); ok && v["served"] == true {
			out = append(out, fmt.Sprint(v["name"]))
		}
	}
	return out
}
