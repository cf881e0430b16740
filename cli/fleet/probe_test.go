package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"strait.io/strait/cli"
	"strait.io/strait/cli/connectivity"
)

// TestProbe: a pod answers each question in JSON without waiting for the end of stdin, and reports
// what is wrong with malformed input.
func TestProbe(t *testing.T) {
	probe := func(stdin io.Reader, args ...string) (string, error) {
		var out bytes.Buffer
		c := ProbeCommand(&cli.App{Stdin: stdin, Stdout: &out})
		c.SetArgs(args)
		c.SetOut(&out)
		c.SilenceUsage, c.SilenceErrors = true, true
		err := c.ExecuteContext(t.Context())
		return out.String(), err
	}
	open, write := io.Pipe()
	defer write.Close()
	go func() { _, _ = io.WriteString(write, `[{"id":7,"network":"tcp4","host":"127.0.0.1","port":1}]`+"\n") }()
	out, err := probe(open, "run")
	var got []connectivity.Outcome
	if err != nil || json.Unmarshal([]byte(out), &got) != nil || len(got) != 1 || got[0].ID != 7 || got[0].Stage != connectivity.Connect {
		t.Errorf("run: %v, %s", err, out)
	}
	for _, c := range []struct {
		args, stdin, says string
	}{
		{"run", "{", "read the calls"}, {"measure", "[]", "read what to measure"}, {"measure", "{}", "at least one address"},
		{"serve --as here", "", "want CLUSTER/NODE/POD"}, {"serve --as a//c", "", "want CLUSTER/NODE/POD"},
	} {
		if out, err := probe(strings.NewReader(c.stdin), strings.Fields(c.args)...); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, %q, want %q", c.args, err, out, c.says)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wait := ProbeCommand(&cli.App{})
	wait.SetArgs([]string{"wait"})
	if err := wait.ExecuteContext(ctx); err != nil {
		t.Errorf("wait: %v", err)
	}
}
