package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"strait.io/strait/cli"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/daemon/api"
)

// TestKeys makes a clusterset of three clusters by files alone.
func TestKeys(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	ok := func(args ...string) string {
		t.Helper()
		r := world(append([]string{"clusterset"}, args...)...).run(t)
		if r.code != 0 {
			t.Fatalf("strait clusterset %s: exit code %d\n%s%s", strings.Join(args, " "), r.code, r.stdout, r.stderr)
		}
		return r.stdout
	}
	prints := func(out string, want ...string) {
		t.Helper()
		for _, w := range want {
			if !strings.Contains(out, w) {
				t.Errorf("%q is not in\n%s", w, out)
			}
		}
	}
	prints(ok("init", "--dir", at("a"), "--id", "rack1", "--pods", "10.1.0.0/16", "--nodes", "192.0.2.0/25"),
		"rack1", "SHA256:", "10.1.0.0/16", "rootFile: "+at("a/root.key"), "pinsFile: "+at("a/pins.yaml"))
	prints(ok("invite", "--dir", at("a"), "--id", "rack2", "--pods", "10.2.0.0/16", "--nodes", "192.0.2.128/25", "--regions", "eu,eu-2", "--accept", "shop,team-*",
		"--seed", "192.0.2.1:7946", "--out", at("rack2.invitation"), "--yes"), "rack2", "eu eu-2", "shop team-*", "strait clusterset accept")
	prints(ok("accept", "--dir", at("b"), at("rack2.invitation"), "--yes"), "rack1", "rack2", "seedsFile: "+at("b/seeds"))
	ok("invite", "--dir", at("a"), "--id", "rack3", "--nodes", "198.51.100.0/24", "--out", at("rack3.invitation"), "--yes")
	ok("accept", "--dir", at("c"), at("rack3.invitation"), "--yes", "--accept", "none")
	prints(ok("accept", "--dir", at("b"), at("a/pins.yaml"), "--yes"), "rack3")
	prints(ok("accept", "--dir", at("b"), at("a/pins.yaml"), "--yes"), "nothing to do")

	for _, file := range []string{"a/root.key", "b/root.key", "a/gossip.key", "b/gossip.key", "b/pins.yaml", "rack2.invitation"} {
		if st, err := os.Stat(at(file)); err != nil || st.Mode() != 0o600 {
			t.Errorf("%s: %v, %v", file, st, err)
		}
	}
	read := func(file string) string {
		text, err := os.ReadFile(at(file))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if read("a/gossip.key") != read("b/gossip.key") || read("a/gossip.key") != read("c/gossip.key") {
		t.Error("the clusters have different gossip keys")
	}
	if read("a/root.key") == read("b/root.key") {
		t.Error("two clusters have one root")
	}
	all := map[string]string{}
	for _, c := range []string{"a", "b", "c"} {
		all[c] = ok("pins", "--dir", at(c))
		prints(all[c], "rack1", "rack2", "rack3")
		for _, secret := range []string{"a", "b", "c"} {
			if key := strings.TrimSpace(read(secret + "/root.key")); strings.Contains(all[c]+read(c+"/pins.yaml"), key) {
				t.Errorf("the pins of %s show the root key of %s", c, secret)
			}
		}
	}
	if strings.Contains(all["c"], "*") {
		t.Errorf("c accepts something:\n%s", all["c"])
	}
	prints(all["a"], "shop team-*")

	old := read("a/root.key")
	prints(ok("rotate", "--dir", at("a")), "rack1", "strait clusterset rotate --finish")
	ok("rotate", "--dir", at("a")) // again does no harm
	prints(ok("accept", "--dir", at("b"), at("a/pins.yaml"), "--yes"), "rack1")
	both := ok("pins", "--dir", at("b"))
	if read("a/root.key") != old {
		t.Error("the first step changed the root key")
	}
	prints(ok("rotate", "--dir", at("a"), "--finish"), "restart straitd")
	if read("a/root.key") == old {
		t.Error("the root key is still the old one")
	}
	ok("accept", "--dir", at("b"), at("a/pins.yaml"), "--yes")
	if still := ok("pins", "--dir", at("b")); strings.Count(both, "SHA256:") != 4 || strings.Count(still, "SHA256:") != 4 {
		t.Errorf("pins of b after the first step:\n%s\nand after the second:\n%s", both, still)
	}
	pins, err := authority.ParsePins([]byte(read("a/pins.yaml")))
	if err != nil {
		t.Fatal(err)
	}
	root, err := authority.ParsePrivate(strings.TrimSpace(read("a/root.key")))
	if err != nil {
		t.Fatal(err)
	}
	finish := func(n2 authority.PublicKey) result {
		socket, _ := startServer(t, &view{Members: []api.Member{
			{Cluster: "rack1", Node: "n1", State: api.Self, Root: root.Public().Fingerprint()},
			{Cluster: "rack1", Node: "n2", State: api.Alive, Root: n2.Fingerprint()},
			{Cluster: "rack2", Node: "n1", State: api.Alive, Root: "another"},
		}})
		return world("clusterset", "rotate", "--finish", "--dir", at("a")).on(socket).run(t)
	}
	if r := finish(pins["rack1"].Roots[0]); r.code != cli.ExitProblem || !strings.Contains(r.stderr, "n2: still certified by the old root") {
		t.Errorf("while a node is certified by the old root: exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	if r := finish(root.Public()); r.code != cli.ExitOK || strings.Count(ok("pins", "--dir", at("a")), "SHA256:") != 3 {
		t.Errorf("the last step: exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	key := "SHA256:" + strings.Repeat("A", 43)
	if r := world("node", "revoke", "n7", "--dir", at("a"), "--key", key, "--yes").run(t); r.code != 0 || !strings.Contains(r.stdout, "node n7 of cluster rack1 signs with "+key) {
		t.Errorf("revoke: exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	if !strings.Contains(read("a/pins.yaml"), "- "+key) {
		t.Errorf("a revoked key is not in the pins:\n%s", read("a/pins.yaml"))
	}
	if r := world("node", "revoke", "n7", "--dir", at("a"), "--key", key, "--yes").run(t); r.code != cli.ExitUsage || !strings.Contains(r.stderr, "revoked already") {
		t.Errorf("revoke again: exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	if r := world("node", "revoke", "n7", "--dir", at("a"), "--key", "n7", "--yes").run(t); r.code != cli.ExitUsage || !strings.Contains(r.stderr, "--key: \"n7\" is not the fingerprint") {
		t.Errorf("a key that is none: exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	prints(ok("forget", "--dir", at("b"), "rack3", "--yes"), "evicted")
	if left := ok("pins", "--dir", at("b")); strings.Contains(left, "rack3") {
		t.Errorf("an evicted cluster is pinned:\n%s", left)
	}
}

func TestKeysRefuse(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	first := []string{"init", "--dir", at("a"), "--id", "rack1", "--pods", "10.1.0.0/16", "--nodes", "192.0.2.0/24"}
	invite := func(id, pods string, more ...string) []string {
		return append([]string{"invite", "--dir", at("a"), "--id", id, "--pods", pods, "--nodes", "192.0.2.0/24", "--out", at(id)}, more...)
	}
	if err := os.WriteFile(at("garbage"), []byte("{garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what    string
		args    []string
		in      string
		code    int
		message string
	}{
		{"before there are keys", invite("rack2", "10.2.0.0/16"), "", cli.ExitProblem, "strait clusterset init"},
		{"a range that is none", []string{"init", "--id", "rack1", "--nodes", "here"}, "", cli.ExitUsage, "--nodes"},
		{"no id", []string{"init", "--nodes", "192.0.2.0/24"}, "", cli.ExitUsage, "id"},
		{"every address", []string{"init", "--dir", at("b"), "--id", "rack1", "--nodes", "0.0.0.0/0"}, "", cli.ExitProblem, "covers every address"},
		{"the first time", first, "", cli.ExitOK, ""},
		{"twice", first, "", cli.ExitProblem, "has the keys of a cluster already"},
		{"overlap", invite("rack2", "10.0.0.0/8", "--yes"), "", cli.ExitProblem, "the pods of cluster rack1 have 10.1.0.0/16"},
		{"the same id", invite("rack1", "10.2.0.0/16", "--yes"), "", cli.ExitProblem, "pinned already"},
		{"no answer", invite("rack2", "10.2.0.0/16"), "", cli.ExitUsage, "pass --yes"},
		{"the answer is no", invite("rack2", "10.2.0.0/16"), "n\n", cli.ExitProblem, "nothing was written"},
		{"the answer is yes", invite("rack2", "10.2.0.0/16"), "y\n", cli.ExitOK, ""},
		{"no file", []string{"accept", at("nothing")}, "", cli.ExitProblem, "no such file"},
		{"garbage", []string{"accept", at("garbage"), "--yes"}, "", cli.ExitProblem, "read invitation"},
		{"evict itself", []string{"evict", "--dir", at("a"), "rack1", "--yes"}, "", cli.ExitUsage, "is this cluster"},
		{"evict an unknown cluster", []string{"evict", "--dir", at("a"), "rack7", "--yes"}, "", cli.ExitUsage, "no cluster rack7 is pinned"},
		{"finish what was not begun", []string{"rotate", "--dir", at("a"), "--finish"}, "", cli.ExitProblem, "begin with strait clusterset rotate"},
		{"a member", []string{"accept", "--dir", at("a"), at("rack2"), "--yes"}, "", cli.ExitProblem, "has the keys of a cluster already"},
	} {
		e := world(append([]string{"clusterset"}, c.args...)...)
		e.Stdin = strings.NewReader(c.in)
		if r := e.run(t); r.code != c.code || !strings.Contains(r.stdout+r.stderr, c.message) {
			t.Errorf("%s: exit code %d, want %d with %q\n%s%s", c.what, r.code, c.code, c.message, r.stdout, r.stderr)
		}
	}
	if _, err := os.Stat(at("b/root.key")); err == nil {
		t.Error("a cluster that was refused has a key")
	}
}
