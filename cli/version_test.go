package cli

import (
	"strings"
	"testing"
)

// TestRevision: what the linker sets is what strait version prints.
func TestRevision(t *testing.T) {
	a := App{Version: "v1.2.3", Revision: "0a1b2c3"}
	if v := a.ThisVersion(); v.Version != "v1.2.3" || v.Revision != "0a1b2c3" || !strings.HasPrefix(v.Go, "go") {
		t.Errorf("%+v", v)
	}
}
