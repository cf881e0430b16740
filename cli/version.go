package cli

import (
	"cmp"
	"runtime"
	"runtime/debug"
)

type ClientVersion struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// ThisVersion describes this program.
func (a *App) ThisVersion() ClientVersion {
	v := ClientVersion{Version: a.Version, Revision: a.Revision, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		v.Version = cmp.Or(v.Version, "unknown")
		return v
	}
	v.Version = cmp.Or(v.Version, info.Main.Version, "unknown")
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			v.Revision = cmp.Or(v.Revision, s.Value)
		}
	}
	return v
}
