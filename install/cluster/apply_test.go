package cluster

import (
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
)

// TestWithoutOperator: the error about a PodMonitor says what the cluster lacks, and which values ask for it.
func TestWithoutOperator(t *testing.T) {
	doc := []byte("{apiVersion: monitoring.coreos.com/v1, kind: PodMonitor, metadata: {name: strait, namespace: strait-system}}")
	_, err := trialIn().Apply(t.Context(), [][]byte{doc}, false)
	if err == nil || !strings.Contains(err.Error(), "no kind PodMonitor: install the CRDs of the Prometheus operator, or turn off the values below metrics") {
		t.Errorf("%v", err)
	}
}

// TestPruneMonitoring: a PodMonitor that is turned off is deleted. An account without rights to
// those of the operator can still upgrade strait, but not without rights to what strait always has.
func TestPruneMonitoring(t *testing.T) {
	monitor := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": monitoring + "/v1", "kind": "PodMonitor",
		"metadata": map[string]any{"name": "strait", "namespace": "strait-system", "labels": map[string]any{partOf: Daemon}},
	}}
	for _, x := range []struct {
		forbidden       string
		deleted, failed bool
	}{{"", true, false}, {"podmonitors", false, false}, {"daemonsets", false, true}} {
		lists := map[schema.GroupVersionResource]string{}
		for _, kind := range installed {
			lists[kind] = kind.Resource + "List"
		}
		client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), lists, monitor.DeepCopy())
		if x.forbidden != "" {
			client.PrependReactor("list", x.forbidden, func(a clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, apierrors.NewForbidden(a.GetResource().GroupResource(), "", nil)
			})
		}
		c := &Cluster{Context: "c1", Namespace: "strait-system", objects: client}
		changes, err := c.Prune(t.Context(), nil, false)
		deleted := slices.Contains(changes, Change{Did: "deleted", Kind: "PodMonitor", Name: "strait-system/strait"})
		if deleted != x.deleted || (err != nil) != x.failed {
			t.Errorf("%q forbidden: %v, %v", x.forbidden, changes, err)
		}
	}
}
