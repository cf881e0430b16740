package writer

import (
	"net/http"
	"slices"
	"testing"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/client-go/kubernetes/scheme"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"strait.io/strait/clustermesh/mcs"
	"strait.io/strait/clustermesh/written"
)

// Two leaders overlap for a moment: both see the same export, both write the same conditions, and both report them under
// one name, so that the API server has one Event of each.
func TestOverlappingLeadersReportOnce(t *testing.T) {
	b := &bench{t: t, ns: "team", name: name("serve")}
	export := &mcsv1beta1.ServiceExport{}
	export.Namespace, export.Name, export.UID = b.ns, "serve", "1"
	v := b.view()
	v.Imports = nil
	v.Exports[0].Valid, v.Exports[0].Exported, v.Exports[0].Reason = false, false, "NoService"
	seen := map[string]bool{}
	var log heard
	for leader := range 2 {
		ops, _ := mcs.Diff(v, b.name, mcs.Have{Export: export}, time.Now().Add(time.Duration(leader)*time.Minute))
		var made []string
		term := answered(t, log.warnings, func(_ *http.Request, body string) int {
			o, _, err := scheme.Codecs.UniversalDeserializer().Decode([]byte(body), nil, nil)
			must(t, err)
			name := o.(*eventsv1.Event).Name
			made = append(made, name)
			if seen[name] {
				return http.StatusConflict // as an API server answers where there is one of that name
			}
			seen[name] = true
			return http.StatusOK
		})
		for _, o := range ops {
			term.createEvents(t.Context(), o, false)
		}
		if slices.Sort(made); len(made) != 2 || made[0] == made[1] { // of Valid and of Ready
			t.Fatalf("leader %d made %q", leader, made)
		}
	}
	if len(seen) != 2 || log.String() != "" {
		t.Errorf("events %v; logged: %s", seen, log.String())
	}
}

// Of many services that are written at once only what is wrong becomes an Event.
func TestEventsOfOneOfMany(t *testing.T) {
	made := 0
	term := answered(t, func(*Config) {}, func(*http.Request, string) int {
		made++
		return http.StatusOK
	})
	o := written.Op{Verb: written.ApplyStatus, Kind: written.ServiceExport, Object: &mcsv1beta1.ServiceExport{}, Events: []written.Event{{Reason: "Exported"}, {Reason: "NoService", Warning: true}}}
	if term.createEvents(t.Context(), o, true); made != 1 {
		t.Errorf("%d Events of one of many, want the warning", made)
	}
	if term.createEvents(t.Context(), o, false); made != 3 {
		t.Errorf("%d Events more of one alone, want both", made-1)
	}
}
