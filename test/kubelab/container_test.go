package kubelab

import (
	"strings"
	"testing"
)

func TestTimed(t *testing.T) {
	const log = "2026-11-29T14:16:11.96Z stderr F 200 1 \n" +
		"2026-11-29T14:16:12.01Z stderr F 000 1 Connection timed out\n" +
		"not a line\n" +
		"2026-11-29T14:16:12.07Z stderr F 20"
	var out strings.Builder
	timed(&out, log)
	const want = "2026-11-29T14:16:11.96Z 200 1 \n2026-11-29T14:16:12.01Z 000 1 Connection timed out\n"
	if out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}
