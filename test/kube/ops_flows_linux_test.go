package kube

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"strait.io/strait/daemon/api"
	"strait.io/strait/internal/testutil"
)

// testFlows: a pod of each cluster holds a connection to a Service whose pods are in c2. One command
// names both clients and the backends' cluster, and another adds them up.
func testFlows(t *testing.T, o *ops) {
	const service = "default/ops-c2"
	for _, c := range []string{"c1", "c2"} {
		command := fmt.Sprintf("sleep 1000 | curl -s telnet://%s:80", o.vip(t, c, "ops-c2"))
		spec := fmt.Sprintf(`  containers: [{name: shell, image: "localhost/shell:1", command: [sh, -c, %q]}]`, command)
		o.shell(t, c, "caller-"+c, c+"n1", "", spec)
	}
	testutil.Eventually(t, 60*time.Second, func() error {
		out, err := o.cliAll(t, "flows", service, "--context", "c1", "--context", "c2", "-o", "json")
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		var l api.FlowList
		if err := json.NewDecoder(strings.NewReader(out)).Decode(&l); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		found := map[api.FlowClient]int{}
		for _, f := range l.Items {
			if f.Backend.Cluster == "c2" && f.Backend.Pod != "" && f.RTT > 0 {
				found[f.Client] += f.Open
			}
		}
		for _, c := range []string{"c1", "c2"} {
			if client := (api.FlowClient{Cluster: c, Node: c + "n1", Name: "default/caller-" + c, Kind: api.ClientPod, Program: "curl"}); found[client] != 1 {
				return fmt.Errorf("%+v has %d connections to c2, want 1: %s", client, found[client], out)
			}
		}
		return nil
	})
	out, err := o.cliAll(t, "top", "clusters", "--seconds", "1", "--context", "c1", "--context", "c2", "-o", "json")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var l api.TopList
	must(t, json.NewDecoder(strings.NewReader(out)).Decode(&l))
	for _, r := range l.Items {
		if r.Name == "c2" && r.Open >= 2 && r.New != nil {
			return
		}
	}
	t.Errorf("c2 has not both connections: %s", out)
}
