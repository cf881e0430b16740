package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/exec"
	"k8s.io/streaming/pkg/httpstream"

	"strait.io/strait/daemon/api/client"
)

// daemonPods selects the daemon's pods.
const daemonPods = "app.kubernetes.io/name=strait,app.kubernetes.io/component=daemon"

// daemon is a daemon of the cluster, which is asked by commands in its pod.
type daemon struct {
	node string
	// unready is why its pod is not ready; empty if it is.
	unready string
	*client.Client
}

// daemons returns the ready daemons.
func (c *Cluster) daemons(ctx context.Context) ([]daemon, error) {
	all, err := c.allDaemons(ctx)
	return slices.DeleteFunc(all, func(d daemon) bool { return d.unready != "" }), err
}

// allDaemons returns the daemons of all pods that have a node.
func (c *Cluster) allDaemons(ctx context.Context) (out []daemon, err error) {
	found, err := list[corev1.Pod](ctx, c, pods, c.Namespace, daemonPods)
	if err != nil {
		return nil, fmt.Errorf("context %s: list the daemon's pods: %w", c.Context, err)
	}
	for _, p := range found {
		if p.Spec.NodeName == "" {
			continue
		}
		run := func(ctx context.Context, args ...string) (client.Output, error) {
			ctx, cancel := context.WithTimeout(ctx, execTimeout)
			defer cancel()
			return c.exec(ctx, place{c.Namespace, p.Name, container}, nil, append([]string{"/strait"}, args...)...)
		}
		out = append(out, daemon{p.Spec.NodeName, notReady(&p), client.OnCommands(run, "node "+p.Spec.NodeName)})
	}
	return out, nil
}

// execTimeout bounds one request: the daemon answers from memory, in milliseconds.
const execTimeout = 15 * time.Second

// place is a container.
type place struct{ namespace, pod, container string }

// exec runs a command in a container to its end. Without stdin, the command has none.
func (c *Cluster) exec(ctx context.Context, in place, stdin io.Reader, command ...string) (out client.Output, err error) {
	executor, err := c.executor(in, stdin != nil, command)
	if err != nil {
		return out, err
	}
	stdout, stderr := bounded{most: maxStdout}, bounded{most: maxStderr}
	err = executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: stdin, Stdout: &stdout, Stderr: &stderr})
	out = client.Output{Stdout: stdout.Bytes(), Stderr: stderr.Bytes()}
	var ended exec.CodeExitError
	switch {
	case errors.As(err, &ended):
		out.Code = ended.Code
		return out, nil
	case err == nil && (stdout.over || stderr.over):
		return out, fmt.Errorf("%s printed more than %d MiB", command[0], maxStdout>>20)
	}
	return out, err
}

// executor speaks WebSocket, or SPDY with API servers and proxies that do not.
func (c *Cluster) executor(in place, stdin bool, command []string) (remotecommand.Executor, error) {
	host, _, err := rest.DefaultServerUrlFor(c.rest)
	if err != nil {
		return nil, err
	}
	address := host.JoinPath("api/v1/namespaces", in.namespace, "pods", in.pod, "exec")
	query := url.Values{"container": {in.container}, "command": command, "stdout": {"true"}, "stderr": {"true"}}
	if stdin {
		query.Set("stdin", "true")
	}
	address.RawQuery = query.Encode()
	spdy, err := remotecommand.NewSPDYExecutor(c.rest, "POST", address)
	if err != nil {
		return nil, err
	}
	socket, err := remotecommand.NewWebSocketExecutor(c.rest, "GET", address.String())
	if err != nil {
		return nil, err
	}
	return remotecommand.NewFallbackExecutor(socket, spdy, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
}

// A node that was taken over must not fill this machine's memory.
const (
	maxStdout = 256 << 20
	maxStderr = 64 << 10
)

// bounded keeps the first bytes of what is written, and drops the rest.
type bounded struct {
	bytes.Buffer
	most int
	over bool
}

func (b *bounded) Write(p []byte) (int, error) {
	keep := p[:min(len(p), b.most-b.Len())]
	b.over = b.over || len(keep) < len(p)
	b.Buffer.Write(keep)
	return len(p), nil
}
