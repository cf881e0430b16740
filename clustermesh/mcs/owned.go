package mcs

import (
	"encoding/json"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FieldManager is the name under which strait writes.
const FieldManager = "strait"

// ours returns the entries of an object's labels ("f:labels") or annotations ("f:annotations") that strait wrote,
// by the API server's own account: the others are somebody else's, and not to be compared or removed.
func ours(fields []metav1.ManagedFieldsEntry, of string, all map[string]string) map[string]string {
	out := map[string]string{}
	for _, f := range fields {
		if f.Manager != FieldManager || f.FieldsV1 == nil {
			continue
		}
		var owned struct {
			Metadata map[string]map[string]any `json:"f:metadata"`
		}
		// Entries that do not parse are treated as not ours; the next apply writes them anew.
		if json.Unmarshal(f.FieldsV1.GetRawBytes(), &owned) != nil {
			continue
		}
		for key := range owned.Metadata[of] {
			name, ok := strings.CutPrefix(key, "f:")
			if v, there := all[name]; ok && there {
				out[name] = v
			}
		}
	}
	return out
}
