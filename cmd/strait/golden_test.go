package main

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite testdata/*.golden")

func TestGolden(t *testing.T) {
	well, _ := startServer(t, wellView())
	ill, _ := startServer(t, illView())
	meshless, _ := startServer(t, meshlessView())
	dual, _ := startServer(t, dualView())
	mesh, _ := startServer(t, meshView())
	guests, _ := startServer(t, guestView())
	none := filepath.Join(t.TempDir(), "none.sock")
	for _, c := range []struct {
		name, socket string
		args         []string
	}{
		{"status-well", well, []string{"status"}},
		{"status-ill", ill, []string{"status"}},
		{"status-ascii", ill, []string{"status", "--ascii"}},
		{"status-json", ill, []string{"status", "-o", "json"}},
		{"status-yaml", well, []string{"status", "-o", "yaml"}},
		{"status-wide", mesh, []string{"status", "-o", "wide"}},
		{"services", ill, []string{"services"}},
		{"status-dual", dual, []string{"status"}},
		{"services-dual", dual, []string{"services"}},
		{"explain-dual", dual, []string{"explain", "default/both"}},
		{"explain-half", dual, []string{"explain", "default/half"}},
		{"backends", ill, []string{"backends"}},
		{"backends-one", well, []string{"backends", "default/far"}},
		{"backends-json", ill, []string{"backends", "shop/refused", "-o", "json"}},
		{"nodes", ill, []string{"nodes"}},
		{"nodes-wide", ill, []string{"nodes", "-o", "wide"}},
		{"services-wide", well, []string{"services", "-o", "wide"}},
		{"services-namespace", ill, []string{"services", "-n", "shop"}},
		{"services-jsonpath", ill, []string{"services", "-o", `jsonpath={range .items[*]}{.name}{"\t"}{.type}{"\n"}{end}`}},
		{"backends-wide", well, []string{"backends", "-o", "wide"}},
		{"flows", well, []string{"flows"}},
		{"flows-wide", well, []string{"flows", "default/serve", "-o", "wide"}},
		{"flows-json", well, []string{"flows", "default/far", "-o", "json"}},
		{"flows-none", ill, []string{"flows", "--ascii"}},
		{"help-flows", well, []string{"flows", "--help"}},
		{"top-counters", well, []string{"top", "--counters", "-o", "json"}},
		{"help-top", well, []string{"top", "--help"}},
		{"members-wide", well, []string{"members", "us-east", "-o", "wide"}},
		{"exports", ill, []string{"exports"}},
		{"exports-wide", ill, []string{"exports", "-n", "default", "-o", "wide"}},
		{"help-services", well, []string{"services", "--help"}},
		{"members", well, []string{"members"}},
		{"members-unpinned", ill, []string{"members", "--ascii"}},
		{"policy", well, []string{"policy"}},
		{"policy-none", ill, []string{"policy", "--ascii"}},
		{"policy-one", well, []string{"policy", "shop"}},
		{"help-policy", well, []string{"policy", "--help"}},
		{"graph", mesh, []string{"graph"}},
		{"graph-dot", mesh, []string{"graph", "-o", "dot"}},
		{"graph-mermaid", mesh, []string{"graph", "-o", "mermaid"}},
		{"showconf", mesh, []string{"peer", "showconf", "node", "us-east-n1"}},
		{"showconf-peer", mesh, []string{"peer", "showconf", "node", "us-west/us-east-n2", "--as-peer", "--allowed-ips", "10.96.0.0/16"}},
		{"showconf-yaml", mesh, []string{"peer", "showconf", "node", "us-east-n1", "--as-peer", "-o", "yaml", "--allowed-ips", "10.96.0.0/16"}},
		{"showconf-json", mesh, []string{"peer", "showconf", "node", "us-east-n1", "--as-peer", "-o", "json"}},
		{"help-showconf", mesh, []string{"peer", "showconf", "node", "--help"}},
		{"peers", guests, []string{"peer", "list"}},
		{"peers-none", well, []string{"peer", "list"}},
		{"help-peer-add", well, []string{"peer", "add", "--help"}},
		{"nodes-meshless", meshless, []string{"nodes"}},
		{"explain", well, []string{"explain", "default/serve"}},
		{"explain-port", well, []string{"explain", "default/serve:80"}},
		{"explain-overruled", ill, []string{"explain", "shop/overruled"}},
		{"explain-refused", ill, []string{"explain", "shop/refused"}},
		{"explain-mixed", ill, []string{"explain", "shop/mixed:dns", "--ascii"}},
		{"explain-headless", well, []string{"explain", "default/peers"}},
		{"help", well, nil},
		{"help-explain", well, []string{"explain", "--help"}},
		{"help-status", well, []string{"help", "status"}},
		{"bpf-services", well, []string{"bpf", "services"}},
		{"bpf-services-nameless", none, []string{"bpf", "services", "--ascii"}},
		{"bpf-services-json", well, []string{"bpf", "services", "241.7.3.9", "-o", "json"}},
		{"bpf-backends", well, []string{"bpf", "backends", "default/serve"}},
		{"bpf-slots", well, []string{"bpf", "slots"}},
		{"bpf-affinity", well, []string{"bpf", "affinity"}},
		{"bpf-sockets", well, []string{"bpf", "sockets"}},
		{"bpf-sockets-yaml", well, []string{"bpf", "sockets", "default/far", "-o", "yaml"}},
		{"bpf-backends-name", well, []string{"bpf", "backends", "-o", "name"}},
		{"bpf-backends-name-nameless", none, []string{"bpf", "backends", "-o", "name"}},
		{"bpf-backends-wide", none, []string{"bpf", "backends", "-o", "wide"}},
		{"bpf-empty", well, []string{"bpf", "sockets", "--pins", "/pins/empty"}},
		{"help-bpf", well, []string{"bpf", "--help"}},
		{"help-bpf-slots", well, []string{"bpf", "slots", "--help"}},
		{"help-opt-out", well, []string{"opt-out", "--help"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := world(append(c.args, "--socket", c.socket)...).run(t)
			golden(t, c.name, got)
		})
	}
}

// golden compares what a run printed with a file, and checks that it is fit for programs that read it.
func golden(t *testing.T, name string, got result) {
	t.Helper()
	if strings.ContainsRune(got.stdout+got.stderr, '\x1b') {
		t.Error("escape byte in output that is no terminal's")
	}
	for line := range strings.Lines(got.stdout) {
		if strings.TrimRight(line, " \n") != strings.TrimSuffix(line, "\n") {
			t.Errorf("blanks at the end of %q", line)
		}
	}
	file := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(file, []byte(got.stdout), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; make it with -update", err)
	}
	if got.stdout != string(want) {
		t.Errorf("%s differs (go test -update rewrites it); got:\n%s", file, got.stdout)
	}
}
