package mcs

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/written"
)

func TestClustersOfOthers(t *testing.T) {
	entry := func(manager, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, FieldsV1: metav1.NewFieldsV1(fields)}
	}
	const two = `{"f:status":{"f:clusters":{".":{},"k:{\"cluster\":\"a\"}":{".":{},"f:cluster":{}},"k:{\"cluster\":\"b\"}":{".":{}}}}}`
	for what, c := range map[string]struct {
		entry metav1.ManagedFieldsEntry
		want  []string
	}{
		"another writer":      {entry("lighthouse-agent", two), []string{"a", "b"}},
		"strait":              {entry(written.Manager, two), nil},
		"strait's status":     {entry(written.StatusManager, two), nil},
		"a list as one field": {entry("lighthouse-agent", `{"f:status":{"f:clusters":{}}}`), nil},
		"something else":      {entry("kubectl", `{"f:spec":{"f:ports":{}}}`), nil},
		"no fields":           {metav1.ManagedFieldsEntry{Manager: "kubectl"}, nil},
		"what does not parse": {entry("kubectl", `{`), nil},
	} {
		if got := ClustersOfOthers([]metav1.ManagedFieldsEntry{c.entry}); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
	}
}

// A condition that another implementation left on an export cannot be removed by an apply. So it is
// answered, once.
func TestConflictLeftByAnother(t *testing.T) {
	for what, e := range map[string]clustermesh.ExportStatus{
		"no Service":        {Service: serve, Reason: "NoService", Message: "there is no Service default/serve"},
		"not announced yet": {Service: serve, Valid: true, Exported: true, Reason: "Valid"},
	} {
		w := newWorld(t)
		w.export(serve)
		w.exports["default/serve"].Status.Conditions = []metav1.Condition{{Type: conflict, Status: metav1.ConditionTrue, Reason: "PortConflict", LastTransitionTime: metav1.NewTime(start)}}
		w.exports["default/serve"].ManagedFields = OthersOnly([]metav1.ManagedFieldsEntry{{Manager: "lighthouse-agent", Operation: metav1.ManagedFieldsOperationUpdate, Subresource: "status",
			FieldsV1: metav1.NewFieldsV1(`{"f:status":{"f:conditions":{".":{},"k:{\"type\":\"Conflict\"}":{".":{},"f:status":{}}}}}`)}})
		w.settle(viewOf().judge(e), serve)
		c := condition(w.exports["default/serve"].Status.Conditions, conflict)
		if c.Status != metav1.ConditionFalse || c.Reason != string(mcsv1beta1.ServiceExportReasonNoConflicts) {
			t.Errorf("%s: %+v", what, c)
		}
	}
}
