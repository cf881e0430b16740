package main

import (
	"context"
	"errors"
	"strings"
	"testing"

	"strait.io/strait/cli"
	"strait.io/strait/daemon/api"
)

// TestCheckBefore: --pre checks this machine alone, asks no daemon, and has the exit codes of a check.
func TestCheckBefore(t *testing.T) {
	facts := api.NewNodeFacts(api.NodeFacts{Node: "n1", Kernel: "6.12.0", BPFFS: true, WireGuard: "kernel", Wanted: "auto", Link: "eth0", MTU: 1500,
		Ports: []api.PortFact{{For: "gossip", Setting: "gossip.bind", Port: "7946/UDP"}}})
	ask := func(f *api.NodeFacts, err error, args ...string) result {
		e := world(append([]string{"check", "--pre"}, args...)...)
		e.Preflight = func(context.Context) (*api.NodeFacts, error) { return f, err }
		return e.run(t)
	}
	r := ask(facts, nil)
	if r.code != cli.ExitOK {
		t.Errorf("%+v", r)
	}
	golden(t, "check-pre", r)
	taken := *facts
	taken.Ports = []api.PortFact{{For: "gossip", Setting: "gossip.bind", Port: "7946/UDP", Error: "address already in use"}}
	if r := ask(&taken, nil, "-o", "short"); r.code != cli.ExitProblem || !strings.Contains(r.stdout, "7946/UDP, for gossip: address already in use") {
		t.Errorf("a taken port: %+v", r)
	}
	if r := ask(nil, errors.New("there is no straitd")); r.code != cli.ExitUnknown || !strings.Contains(r.stderr, "there is no straitd") {
		t.Errorf("no straitd: %+v", r)
	}
	if r := ask(facts, nil, "--context", "c1"); r.code != cli.ExitUsage {
		t.Errorf("a context: %+v", r)
	}
	if r := world("check", "--pre").run(t); r.code != cli.ExitUsage {
		t.Errorf("a program that checks no machine: %+v", r)
	}
}
