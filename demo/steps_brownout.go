package demo

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"strait.io/strait/daemon/api"
	"strait.io/strait/demo/lab"
	"strait.io/strait/demo/traffic"
)

const (
	serveService = "default/serve"
	// half of the pods of a cluster can bear 1.4 times as much.
	homeShare = 0.7
	// shareWithin is how far a share that was counted can be from the one that was explained: calls
	// are few, and each draws for itself.
	shareWithin = 0.1
)

// brownOut is step 9: half of a cluster's pods are not ready, and a part of the traffic spills.
func (s *scenario) brownOut(ctx context.Context) error {
	if len(s.home.Nodes) < 2 {
		s.out.note("skipping step 9: a cluster of one node has one pod, of which none is half; use --nodes 2")
		return nil
	}
	st, end := s.begin(ctx, 9, "brown-out", fmt.Sprintf("one of two serve pods in %s is not ready, with service.strait.io/locality: cluster,clusterset", s.home.Name))
	return end(s.doBrownOut(ctx, st))
}

func (s *scenario) doBrownOut(ctx context.Context, st *Step) (err error) {
	path := filepath.Join(manifestDir(s.Lab, s.home.Name), "serve.yaml")
	whole, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, writeFile(path, string(whole), 0o644))
	}()
	annotated := strings.Replace(string(whole), "metadata:\n", "metadata:\n  annotations:\n    service.strait.io/locality: cluster,clusterset\n", 1)
	if err := writeFile(path, annotated, 0o644); err != nil {
		return err
	}
	node := s.home.Nodes[0]
	var e *api.Explanation
	spilled := func(want float64) func() bool {
		return func() bool {
			e, err = s.api(node.Name).Explain(ctx, serveService, "")
			return err == nil && math.Abs(s.shareOfHome(e)-want) < 0.01
		}
	}
	if err := poll(ctx, backWithin, 50*time.Millisecond, spilled(1)); err != nil {
		return errors.Join(err, errors.New("the annotation has no effect"))
	}
	if _, err := s.writeReady(s.home.Name, s.home.Nodes[:1], false); err != nil {
		return err
	}
	seen := poll(ctx, endpointGoneWithin, 20*time.Millisecond, spilled(homeShare))
	if ctx.Err() != nil {
		return ctx.Err()
	}
	st.expect(seen == nil, "strait explain says that 70 % stay, and the rest spills", fmt.Sprintf("%.0f %%", 100*s.shareOfHome(e)), "70 %")
	began := time.Now()
	if _, err := s.call(st, node, traffic.Order{Target: s.serveURL(), EveryMS: 5}); err != nil {
		return err
	}
	if err := sleep(ctx, 2*time.Second); err != nil {
		return err
	}
	calls := len(wrong(st.runs, began, from())) // all that were answered
	home := calls - len(wrong(st.runs, began, from(s.home.Name)))
	counted := float64(home) / float64(max(calls, 1))
	st.expect(math.Abs(counted-homeShare) <= shareWithin, "the callers counted the same", fmt.Sprintf("%.0f %% of %d", 100*counted, calls), "60 % to 80 %")
	return s.whatIf(ctx, st, node)
}

// shareOfHome is the part of new connections to serve that stays in the home cluster.
func (s *scenario) shareOfHome(e *api.Explanation) (share float64) {
	if e == nil || len(e.Service.Frontends) == 0 {
		return 0
	}
	for _, x := range e.Service.Frontends[0].Endpoints {
		if x.Cluster == s.home.Name {
			share += x.Share
		}
	}
	return share
}

// whatIf asks where connections would go if the home cluster failed too. Nothing may change.
func (s *scenario) whatIf(ctx context.Context, st *Step, node lab.Node) error {
	change := "cluster " + s.home.Name + " down"
	answer, err := s.api(node.Name).WhatIf(ctx, change, serveService, "")
	if err != nil {
		return err
	}
	got := "nothing"
	elsewhere := len(answer.Moved) > 0
	for _, m := range answer.Moved {
		got = m.After
		elsewhere = elsewhere && !strings.Contains(m.After, s.home.Name) && !strings.Contains(m.After, "nowhere")
	}
	st.expect(elsewhere, fmt.Sprintf("strait explain --what-if %q says who would answer", change), got, "other clusters")
	return nil
}
