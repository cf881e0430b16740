package main

import (
	"bytes"
	"context"
	"reflect"
	"testing"

	"strait.io/strait/daemon/api/client"
)

// TestTransportsAnswerTheSame: the commands that a client runs beside a daemon answer what its
// socket does, and refuse the same.
func TestTransportsAnswerTheSame(t *testing.T) {
	well, _ := startServer(t, wellView())
	ill, _ := startServer(t, illView())
	for _, socket := range []string{well, ill} {
		direct := client.OnSocket(socket)
		commands := client.OnCommands(func(ctx context.Context, args ...string) (client.Output, error) {
			var stdout, stderr bytes.Buffer
			e := world(args...).on(socket)
			e.Stdout, e.Stderr = &stdout, &stderr
			code := run(ctx, e)
			return client.Output{Stdout: stdout.Bytes(), Stderr: stderr.Bytes(), Code: code}, nil
		}, socket)
		for name, ask := range questions(t.Context()) {
			want, wantErr := ask(direct)
			got, err := ask(commands)
			if !reflect.DeepEqual(got, want) || !reflect.DeepEqual(err, wantErr) {
				t.Errorf("%s: by commands %+v, %v; by the socket %+v, %v", name, got, err, want, wantErr)
			}
		}
	}
}

// questions are all that a client asks, each with answers and refusals.
func questions(ctx context.Context) map[string]func(*client.Client) (any, error) {
	return map[string]func(*client.Client) (any, error){
		"status":            func(c *client.Client) (any, error) { return boxed(c.Status(ctx)) },
		"services":          func(c *client.Client) (any, error) { return boxed(c.Services(ctx)) },
		"nodes":             func(c *client.Client) (any, error) { return boxed(c.Nodes(ctx)) },
		"members":           func(c *client.Client) (any, error) { return boxed(c.Members(ctx)) },
		"policies":          func(c *client.Client) (any, error) { return boxed(c.Policies(ctx)) },
		"peers":             func(c *client.Client) (any, error) { return boxed(c.Peers(ctx)) },
		"backends":          func(c *client.Client) (any, error) { return boxed(c.Backends(ctx, "")) },
		"backends of one":   func(c *client.Client) (any, error) { return boxed(c.Backends(ctx, "default/far")) },
		"backends of none":  func(c *client.Client) (any, error) { return boxed(c.Backends(ctx, "default/fra")) },
		"explain":           func(c *client.Client) (any, error) { return boxed(c.Explain(ctx, "default/serve", "")) },
		"explain from":      func(c *client.Client) (any, error) { return boxed(c.Explain(ctx, "default/serve", "eu/n1")) },
		"explain from none": func(c *client.Client) (any, error) { return boxed(c.Explain(ctx, "default/serve", "nobody")) },
		"explain none":      func(c *client.Client) (any, error) { return boxed(c.Explain(ctx, "default/nothing-like-it", "")) },
		"what if":           func(c *client.Client) (any, error) { return boxed(c.WhatIf(ctx, "drain us-east", "", "")) },
		"what if one":       func(c *client.Client) (any, error) { return boxed(c.WhatIf(ctx, "drain a", "default/serve", "eu/n1")) },
		"what if not":       func(c *client.Client) (any, error) { return boxed(c.WhatIf(ctx, "nonsense", "", "")) },
	}
}

// boxed drops the type of an answer, and the answer if there is an error.
func boxed[T any](answer *T, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return *answer, nil
}
