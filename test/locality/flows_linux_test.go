package locality

import (
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"strait.io/strait/daemon/api"
	"strait.io/strait/internal/testutil"
)

// hold opens n connections to an address from the callers' pods, and keeps them until the test ends.
func (w *world) hold(n int) {
	w.Helper()
	to := w.frontend()
	script := fmt.Sprintf("for i in $(seq %d); do exec {fd}<>/dev/tcp/%s/%d || exit 1; read -r -u $fd -N 1; done; sleep 1000", n, to.Addr(), to.Port())
	cmd := exec.Command("bash", "-c", script)
	w.must(w.near.begin(w.near.pods, cmd))
	w.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have failed
		_ = cmd.Wait()
	})
}

// flows are the open connections that strait lists on the callers' node, by the cluster of the backend.
func (w *world) flows() (map[string]api.Flow, error) {
	l, err := w.near.api().Flows(w.Context(), serveName)
	if err != nil {
		return nil, err
	}
	if l.Partial != "" {
		return nil, errors.New(l.Partial)
	}
	out := map[string]api.Flow{}
	for _, f := range l.Items {
		out[f.Backend.Cluster] = f
	}
	if len(out) != len(l.Items) {
		return nil, fmt.Errorf("%d flows to %d clusters: %+v", len(l.Items), len(out), l.Items)
	}
	return out, nil
}

// holds waits until strait lists so many open connections to each cluster, and all that it can know of
// them.
func (w *world) holds(want map[string]int) {
	w.Helper()
	client := func(host byte) api.FlowClient {
		return api.FlowClient{Cluster: "us-east", Node: "n1", Name: w.near.pod(host).String(), Kind: api.ClientAddress}
	}
	// The pods of a cluster share a network, so who calls a pod there has the pod's own address.
	from := map[string]api.FlowClient{"us-east": client(firstPod), "us-west": client(2)}
	testutil.Eventually(w, patience, func() error {
		got, err := w.flows()
		if err != nil {
			return err
		}
		if len(got) != len(want) {
			return fmt.Errorf("flows to %d clusters, want %v", len(got), want)
		}
		for cluster, open := range want {
			f := got[cluster]
			// Each answer is the cluster's name, after which the backend closed; nothing was sent.
			if f.Open != open || f.Client != from[cluster] || f.Service != serveName || f.Port != "http" || f.Backend.Node != "n1" ||
				f.Sent == nil || *f.Sent != 0 || f.Received == nil || *f.Received != uint64(open*len(cluster)) || f.RTT <= 0 {
				return fmt.Errorf("to %s: %+v; want %d open", cluster, f, open)
			}
		}
		return nil
	})
}

// TestFlows: strait lists who is connected to whom, and what each cluster gets per second. Connections
// stay where they are when the next ones go elsewhere, and those that are refused are counted and not
// listed.
func TestFlows(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		testutil.Missing(t, "needs bash, which opens connections")
	}
	w := newWorld(t, 1)
	w.hold(3)
	w.holds(map[string]int{"us-east": 3})
	w.near.ready(0)
	w.settles(shares{"us-west": 0.5, "eu-central": 0.5})
	w.central.ready(0)
	w.settles(shares{"us-west": 1})
	w.hold(2)
	w.holds(map[string]int{"us-east": 3, "us-west": 2})
	t.Log(w.near.strait("flows", "-o", "wide"))

	w.call(50 * time.Millisecond)
	w.rate("a connection goes to us-west", func(r api.TopRow) bool {
		return r.New != nil && *r.New > 1 && r.Refused != nil && *r.Refused == 0 && r.Open >= 5 && len(r.To) == 1 && r.To[0].Cluster == "us-west"
	})
	w.west.ready(0)
	w.rate("a connection is refused", func(r api.TopRow) bool { return r.New != nil && *r.New == 0 && r.Refused != nil && *r.Refused > 1 })
	w.holds(map[string]int{"us-east": 3, "us-west": 2})
	t.Log(w.near.strait("top", "--seconds", "1"))
}

// rate waits until strait top has a row for the service that is as it should be.
func (w *world) rate(what string, as func(api.TopRow) bool) {
	w.Helper()
	testutil.Eventually(w, patience, func() error {
		text := w.near.strait("top", "--seconds", "1", "-o", "json")
		var l api.TopList
		if err := json.NewDecoder(strings.NewReader(text)).Decode(&l); err != nil {
			return err
		}
		if len(l.Items) != 1 || l.Items[0].Name != serveName || !as(l.Items[0]) {
			return fmt.Errorf("%s, but strait top has %s", what, text)
		}
		return nil
	})
}
