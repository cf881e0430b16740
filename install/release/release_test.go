package release

import (
	"strings"
	"testing"
	"time"
)

func sample() Release {
	return Release{
		Version: "v1.2.3-rc.1", Revision: "abc", Time: time.Unix(1e9, 0), Registry: "registry.example/team",
		URL: "https://strait.example/v1.2.3-rc.1",
	}
}

func TestCheck(t *testing.T) {
	if err := sample().Check(); err != nil {
		t.Errorf("%+v: %v", sample(), err)
	}
	for want, change := range map[string]func(*Release){
		`VERSION: "1.2.3" is not a version`:          func(r *Release) { r.Version = "1.2.3" },
		`VERSION: "v1.2" is not a version`:           func(r *Release) { r.Version = "v1.2" },
		`VERSION: "v1.2.3+x" is not a version`:       func(r *Release) { r.Version = "v1.2.3+x" },
		`VERSION: "2af4e19b-dirty" is not a version`: func(r *Release) { r.Version = "2af4e19b-dirty" },
		"differs from the commit abc: commit or":     func(r *Release) { r.Revision = "abc-dirty" },
		`REGISTRY: "" is not a registry`:             func(r *Release) { r.Registry = "" },
		`REGISTRY: "https://a" is not`:               func(r *Release) { r.Registry = "https://a" },
		`REGISTRY: "a/" is not`:                      func(r *Release) { r.Registry = "a/" },
		`RELEASE_URL: "strait.io" does not begin`:    func(r *Release) { r.URL = "strait.io" },
		"v1.2.3-01": func(r *Release) { r.Version = "v1.2.3-01" },
		"write make release VERSION=v0.1.0\nREGISTRY": func(r *Release) { r.Version, r.Registry = "x", "" },
	} {
		r := sample()
		change(&r)
		if err := r.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", r, err, want)
		}
	}
}

func TestPlatforms(t *testing.T) {
	got, err := Platforms("linux/amd64 darwin/arm64  linux/amd64")
	if err != nil || len(got) != 2 || got[1] != (Platform{"darwin", "arm64"}) {
		t.Errorf("%v, %v", got, err)
	}
	for _, list := range []string{"", "darwin/arm64", "linux", "linux/386", "plan9/amd64 linux/amd64"} {
		if got, err := Platforms(list); err == nil {
			t.Errorf("%q: %v, want an error", list, got)
		}
	}
	r := sample()
	for p, want := range map[Platform]string{
		{"linux", "arm64"}:   "strait_v1.2.3-rc.1_linux_arm64.tar.gz strait",
		{"windows", "amd64"}: "strait_v1.2.3-rc.1_windows_amd64.zip strait.exe",
	} {
		if got := r.Archive("strait", p) + " " + p.Executable("strait"); got != want {
			t.Errorf("%v: %s, want %s", p, got, want)
		}
	}
}
