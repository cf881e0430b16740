package client

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/url"
	"strings"

	"strait.io/strait/daemon/api"
)

// Output is what a command of strait left.
type Output struct {
	Stdout, Stderr []byte
	Code           int // exit code
}

// Run runs a command of strait beside a daemon. Args are without the program's name. The error is
// why the command did not run to its end.
type Run func(ctx context.Context, args ...string) (Output, error)

// commands is the Transport that asks by commands of strait, where nothing else leads to a socket.
type commands struct {
	run  Run
	name string
}

// OnCommands makes a client of a daemon beside which commands of strait can run, such as by kubectl
// exec. The name is that of the daemon in errors.
func OnCommands(run Run, name string) *Client { return Over(commands{run, name}, name) }

// answering are the commands whose JSON is the answer to a path.
var answering = map[string]func(q url.Values) []string{
	"/v1/status":   func(url.Values) []string { return []string{"status"} },
	"/v1/services": func(url.Values) []string { return []string{"services"} },
	"/v1/nodes":    func(url.Values) []string { return []string{"nodes"} },
	"/v1/members":  func(url.Values) []string { return []string{"members"} },
	"/v1/policies": func(url.Values) []string { return []string{"policy"} },
	"/v1/peers":    func(url.Values) []string { return []string{"peer", "list"} },
	"/v1/flows":    func(q url.Values) []string { return append([]string{"flows"}, q["service"]...) },
	"/v1/logs":     func(url.Values) []string { return []string{"logs", "--since=1970-01-01"} },
	"/v1/traffic":  func(url.Values) []string { return []string{"top", "--counters"} },
	"/v1/backends": func(q url.Values) []string { return append([]string{"backends"}, q["service"]...) },
	"/v1/explain": func(q url.Values) []string {
		return append(append([]string{"explain"}, q["service"]...), flag("from", q)...)
	},
	"/v1/ping": func(q url.Values) []string { return append([]string{"ping"}, q["to"]...) },
	"/v1/whatif": func(q url.Values) []string {
		args := append([]string{"explain", "--what-if=" + q.Get("change")}, q["service"]...)
		return append(args, flag("from", q)...)
	},
}

// flag returns a flag with the value that a query has, if it has one.
func flag(name string, q url.Values) []string {
	if !q.Has(name) {
		return nil
	}
	return []string{"--" + name + "=" + q.Get(name)}
}

// Get is that of Transport.
func (c commands) Get(ctx context.Context, path string) (io.ReadCloser, error) {
	u, err := url.Parse(path)
	if err != nil {
		return nil, NoAnswer(ctx, c.name, err)
	}
	q := u.Query()
	command, known := answering[u.Path]
	if q.Get("node") == api.EveryNode {
		return nil, &api.Failure{Reason: api.NoAnswer, Message: "a command in a pod asks the daemon there, and strait-view, which asks all, does not answer",
			Try: "see whether the pods of strait-view run"}
	}
	if !known {
		return nil, NoAnswer(ctx, c.name, fmt.Errorf("no command of strait answers %s", path))
	}
	out, err := c.run(ctx, append(append(command(q), flag("node", q)...), "-o", "json")...)
	if err != nil {
		return nil, NoAnswer(ctx, c.name, err)
	}
	if out.Code != 0 && len(out.Stdout) == 0 {
		return nil, commandFailure(out)
	}
	// The exit code of a status says whether all is well; there is an answer either way.
	return io.NopCloser(bytes.NewReader(out.Stdout)), nil
}

// commandFailure reads why a command has no answer from what package cli prints, and from its exit
// code.
func commandFailure(out Output) *api.Failure {
	f := &api.Failure{Reason: api.NoAnswer}
	switch out.Code {
	case 1:
		f.Reason = api.NotFound
	case 2:
		f.Reason = api.BadRequest
	}
	var message []string
	for line := range strings.Lines(string(out.Stderr)) {
		line = strings.TrimSpace(line)
		if try, found := strings.CutPrefix(line, "try  "); found {
			f.Try = try
		} else if line != "" {
			message = append(message, strings.TrimPrefix(line, "strait: "))
		}
	}
	if f.Message = strings.Join(message, "; "); f.Message == "" {
		f.Message = fmt.Sprintf("strait ended with exit code %d, and without a message", out.Code)
	}
	return f
}
