package mirror_test

import (
	"fmt"
	"strings"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/policy"
	"strait.io/strait/clustermesh/policy/mirror"
	"strait.io/strait/clustermesh/replica"
)

// TestResultsFitIntoARecord: however many policies leave out however much, the cluster's record can be
// published, and all that is left out counts.
func TestResultsFitIntoARecord(t *testing.T) {
	var policies []policy.Policy
	var skipped []mirror.Skipped
	for i := range 1000 {
		name := fmt.Sprintf("p-%03d", i)
		policies = append(policies, mirroring(name))
		for j := range 30 {
			skipped = append(skipped, mirror.Skipped{Policy: name, Source: fmt.Sprintf("c1/shop/s-%02d", j), Reason: policy.Refused, Message: strings.Repeat("no ", 1000)})
		}
	}
	got := mirror.Results(policies, mirror.Plan{}, nil, skipped)
	left := 0
	for _, r := range got {
		left += len(r.Skipped) + r.SkippedMore
	}
	if len(got) != 1000 || left != 30_000 || len(got[0].Skipped) != clustermesh.MaxSkipped || len(got[999].Skipped) > 0 {
		t.Errorf("%d results, %d left out, %d and %d named", len(got), left, len(got[0].Skipped), len(got[999].Skipped))
	}
	o := clustermesh.Origin{Cluster: "c2"}
	e, err := replica.NewEntry(clustermesh.Record{Origin: o, Stamp: clustermesh.Stamp{Epoch: 1, Version: 1}, Content: clustermesh.Content{Results: got}})
	if err != nil || len(e.Record.Problems) > 0 {
		t.Fatalf("%v, %v", err, e.Record.Problems)
	}
	if b, err := e.Bytes(); err != nil || len(b) > replica.MaxRecord/10 {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}
