package check

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"strait.io/strait/daemon/api"
	"strait.io/strait/internal/problem"
)

// TestUpgradeChecks: what is in the way of an upgrade fails, what is at risk is a warning, and each
// is one finding of the check that is about it.
func TestUpgradeChecks(t *testing.T) {
	for _, tc := range []struct {
		name string
		edit func(*Upgrade)
		want []string // STATE TITLE: MESSAGE, of what is not fine
	}{
		{"nothing is in the way", func(*Upgrade) {}, nil},
		{"a patch", func(u *Upgrade) { u.To, u.Others["b/n1"] = "v0.1.5", "v0.1.0" }, nil},
		{"two minor versions on", func(u *Upgrade) { u.To, u.Others["b/n1"] = "v0.3.0", "v0.3.1" },
			[]string{"failed v0.3.0 follows the version of every daemon: v0.3.0 is more than one minor version after v0.1.0 [a/n1]"}},
		{"one back", func(u *Upgrade) { u.Nodes[0].Status.Version, u.To = "v0.3.0", "v0.2.0" },
			[]string{"warning v0.2.0 follows the version of every daemon: v0.2.0 is older than v0.3.0: what only the newer one has stops [a/n1]"}},
		{"two back", func(u *Upgrade) { u.Nodes[0].Status.Version, u.To = "v0.4.0", "v0.2.0" },
			[]string{"failed v0.2.0 follows the version of every daemon: v0.2.0 is more than one minor version before v0.4.0 [a/n1]"}},
		{"a build that is no release", func(u *Upgrade) { u.To, u.Others["b/n1"] = "dev", "dev" },
			[]string{"warning dev follows the version of every daemon: from v0.1.0 to dev: one is no release, so nothing is promised [a/n1]"}},
		{"a build again", func(u *Upgrade) { u.To, u.Nodes[0].Status.Version, u.Others["b/n1"] = "dev", "dev", "dev" }, nil},
		{"an upgrade that has not ended", func(u *Upgrade) {
			for i, v := range []string{"v0.1.0", "v0.1.1"} {
				u.Nodes = append(u.Nodes, Node{Name: fmt.Sprintf("a/n%d", i+2), Cluster: "a", Status: &api.Status{Version: v, Ready: true}})
			}
		}, []string{"warning the last upgrade has reached every daemon: straitd is v0.1.1, and most others are v0.1.0 [a/n3]"}},
		{"another cluster is too old", func(u *Upgrade) { u.Others["b/n1"] = "v0.0.9" },
			[]string{"failed the daemons of other clusters work with v0.2.0: its daemon is v0.0.9: more than one minor version from v0.2.0 [b/n1]"}},
		{"another cluster publishes no version", func(u *Upgrade) { u.Others["b/n1"], u.Others["b/n2"] = "", "" },
			[]string{"warning the daemons of other clusters work with v0.2.0: its daemon does not publish its version [b/n1 b/n2]"}},
		{"a value that the chart does not take", func(u *Upgrade) { u.Refused = errors.New(`mesh.mode: "on" is unknown`) },
			[]string{`failed the chart takes the values, and the API server the objects: mesh.mode: "on" is unknown`}},
		{"an image that was set", func(u *Upgrade) { u.Pinned, u.Image = true, "registry.example/strait:v0.1.0" },
			[]string{"warning the image is that of the new version: the image stays at registry.example/strait:v0.1.0, as set earlier"}},
		{"tunnels", func(u *Upgrade) { u.ByHand = []string{"DaemonSet strait-system/strait-tunnel"} },
			[]string{"warning all pods are replaced by the upgrade: the pods of DaemonSet strait-system/strait-tunnel change, and go on as before"}},
		{"a daemon that does not answer", func(u *Upgrade) {
			u.Nodes[0].Status, u.Nodes[0].Error, u.Nodes[0].Try = nil, "its pod is not ready", "see why"
		},
			[]string{"unknown every daemon answers: its pod is not ready [a/n1]"}},
		{"a problem", func(u *Upgrade) {
			u.Nodes[0].Status.Problems = []problem.Problem{{Code: problem.PrefixOverlap, Message: "overlaps"}}
		}, []string{"failed no problems with clusters and nodes: overlaps [a/n1]"}},
	} {
		u := Upgrade{To: "v0.2.0", Others: map[string]string{"b/n1": "v0.2.0"},
			Nodes: []Node{{Name: "a/n1", Cluster: "a", Status: &api.Status{Version: "v0.1.0", Ready: true}}}}
		tc.edit(&u)
		var got []string
		for _, c := range UpgradeChecks(u) {
			for _, f := range c.Findings {
				line := fmt.Sprintf("%s %s: %s", f.state, c.Title, f.Message)
				if len(f.Nodes) > 0 {
					line += fmt.Sprintf(" %v", f.Nodes)
				}
				if got = append(got, line); f.Try == "" {
					t.Errorf("%s: %s: it does not say what to do", tc.name, line)
				}
			}
		}
		if strings.Join(got, "\n") != strings.Join(tc.want, "\n") {
			t.Errorf("%s:\n%s\nwant\n%s", tc.name, strings.Join(got, "\n"), strings.Join(tc.want, "\n"))
		}
	}
}
