package metrics

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

// TestBuildInfo: strait_build_info says which program it is before there is a status, too.
func TestBuildInfo(t *testing.T) {
	for build, want := range map[Build]string{
		{"v1.2.3", "0a1b2c3"}: `revision="0a1b2c3",version="v1.2.3"`,
		{"v1.2.3", ""}:        `revision="unknown",version="v1.2.3"`,
	} {
		err := testutil.GatherAndCompare(New(build).registry, strings.NewReader(`# HELP strait_build_info Always 1; the labels give the version, the revision and the kind of mesh.
# TYPE strait_build_info gauge
strait_build_info{mesh_mode="unknown",`+want+`} 1
`), "strait_build_info")
		if err != nil {
			t.Errorf("%+v: %v", build, err)
		}
	}
}
