package cluster

import (
	"strings"
	"testing"
)

// TestWithoutOperator: the error about a PodMonitor says what the cluster lacks, and which values ask for it.
func TestWithoutOperator(t *testing.T) {
	doc := []byte("{apiVersion: monitoring.coreos.com/v1, kind: PodMonitor, metadata: {name: strait, namespace: strait-system}}")
	_, err := trialIn().Apply(t.Context(), [][]byte{doc}, false)
	if err == nil || !strings.Contains(err.Error(), "no kind PodMonitor: install the CRDs of the Prometheus operator, or turn off the values below metrics") {
		t.Errorf("%v", err)
	}
}
