package failover

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"strait.io/strait/demo/lab"
)

// edit changes the first places, or all if times is negative, in the YAML of a cluster's Service. The file is
// replaced, so that a daemon reads either the old text or the new. t0 is taken just before that.
func (c *clusterset) edit(cluster, old, changed string, times int) (t0 time.Time, err error) {
	path := filepath.Join(c.manifests(cluster), "serve.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		return t0, err
	}
	if !strings.Contains(string(text), old) {
		return t0, fmt.Errorf("%s has no %q", path, old)
	}
	tmp := filepath.Join(filepath.Dir(path), ".serve.yaml.tmp")
	if err := os.WriteFile(tmp, []byte(strings.Replace(string(text), old, changed, times)), 0o644); err != nil {
		return t0, err
	}
	t0 = time.Now()
	return t0, os.Rename(tmp, path)
}

// setReady makes all pods of the home cluster ready, or not.
func (c *clusterset) setReady(ready bool) (t0 time.Time, err error) {
	return c.edit(c.home.Name, fmt.Sprintf("  ready: %t\n", !ready), fmt.Sprintf("  ready: %t\n", ready), -1)
}

// useAllAlike makes every node use the pods of all clusters, so that a drain concerns all of them.
func (c *clusterset) useAllAlike(ctx context.Context) error {
	weights := ""
	for _, other := range c.Clusters {
		weights += "," + other.Name + "=1"
	}
	for _, cluster := range c.Clusters {
		// The Service comes first in the file.
		_, err := c.edit(cluster.Name, "metadata:\n", "metadata:\n  annotations:\n    service.strait.io/weights: "+weights[1:]+"\n", 1)
		if err != nil {
			return err
		}
	}
	all := c.pods(c.Nodes())
	_, err := c.when(ctx, func(held frontends) bool {
		return !slices.ContainsFunc(all, func(pod netip.Addr) bool { return !held.have(pod) })
	})
	if err != nil {
		return fmt.Errorf("use the pods of all clusters: %w", err)
	}
	if err := sleep(ctx, 2*backWithin/3); err != nil { // traffic returns little by little
		return err
	}
	c.whole, err = c.maps()
	return err
}

// heldOpen is how many connections stay open while the cluster is drained, to be counted.
const heldOpen = 3

// hold opens connections to the home cluster's pods, which are the only ones that its nodes use now.
func (c *clusterset) hold(ctx context.Context) error {
	script := "exec"
	for i := range heldOpen {
		script += fmt.Sprintf(" %d<>/dev/tcp/%s/80", 3+i, c.ip)
	}
	node := c.home.Nodes[0].Name
	_, err := c.Start(lab.Command{
		Place: lab.Place{Node: node, Pod: lab.Client}, Log: filepath.Join(c.NodeDir(node), "hold.log"),
		Argv: []string{"bash", "-c", script + " && exec sleep infinity"},
	})
	if err != nil {
		return err
	}
	return sleep(ctx, time.Second)
}

// wantOpen checks that each node counts its open connections to the drained cluster.
func (c *clusterset) wantOpen(ctx context.Context) error {
	for i, n := range c.home.Nodes {
		want := 0
		if i == 0 {
			want = heldOpen
		}
		status, err := c.api(n).Status(ctx)
		if err != nil {
			return err
		}
		for _, s := range status.Clusters {
			if s.Name == c.home.Name && (s.Open == nil || *s.Open != want) {
				text, _ := json.Marshal(s)
				return fmt.Errorf("%s says %s, want %d open connections", n.Name, text, want)
			}
		}
	}
	return nil
}
