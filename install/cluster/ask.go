package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/streaming/pkg/httpstream"

	"strait.io/strait/daemon/api"
	"strait.io/strait/internal/problem"
)

// daemonPods selects the daemon's pods.
const daemonPods = "app.kubernetes.io/name=strait,app.kubernetes.io/component=daemon"

// Answer is one daemon's view of the clusterset.
type Answer struct {
	Cluster, Node string
	// MeshOff is true if pods are reached without a tunnel.
	MeshOff  bool
	Nodes    []api.Node
	Clusters []api.Cluster
	Problems []problem.Problem
}

// Ask asks every ready daemon what it knows. If some do not answer, it returns an error along with
// the answers of the others.
func (c *Cluster) Ask(ctx context.Context, id string) ([]Answer, error) {
	found, err := list[corev1.Pod](ctx, c, pods, c.Namespace, daemonPods)
	if err != nil {
		return nil, fmt.Errorf("context %s: list the daemon's pods: %w", c.Context, err)
	}
	var out []Answer
	var errs []error
	for _, p := range found {
		if notReady(&p) != "" {
			continue
		}
		a := Answer{Cluster: id, Node: p.Spec.NodeName}
		if err := c.ask(ctx, p.Name, &a); err != nil {
			errs = append(errs, fmt.Errorf("context %s: ask the daemon on %s: %w", c.Context, a.Node, err))
			continue
		}
		out = append(out, a)
	}
	slices.SortFunc(out, func(a, b Answer) int { return strings.Compare(a.Node, b.Node) })
	return out, errors.Join(errs...)
}

func (c *Cluster) ask(ctx context.Context, pod string, a *Answer) error {
	var status api.StatusAnswer
	var nodes api.NodeList
	for _, q := range []struct {
		command string
		into    any
	}{{"status", &status}, {"nodes", &nodes}} {
		// The exit code is whether all is well; there is an answer either way.
		text, err := c.exec(ctx, pod, "/strait", q.command, "-o", "json")
		if jsonErr := json.Unmarshal(text, q.into); jsonErr != nil {
			if err == nil {
				err = jsonErr
			}
			return err
		}
	}
	a.MeshOff, a.Clusters, a.Problems, a.Nodes = status.Datapath.Mesh == "off", status.Clusters, status.Problems, nodes.Items
	return nil
}

// execTimeout bounds one request: the daemon answers from memory, in milliseconds.
const execTimeout = 15 * time.Second

// exec runs a command in the daemon's container and returns its output.
func (c *Cluster) exec(ctx context.Context, pod string, command ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, execTimeout)
	defer cancel()
	host, _, err := rest.DefaultServerUrlFor(c.rest)
	if err != nil {
		return nil, err
	}
	address := host.JoinPath("api/v1/namespaces", c.Namespace, "pods", pod, "exec")
	address.RawQuery = url.Values{"container": {container}, "command": command, "stdout": {"true"}, "stderr": {"true"}}.Encode()
	spdy, err := remotecommand.NewSPDYExecutor(c.rest, "POST", address)
	if err != nil {
		return nil, err
	}
	socket, err := remotecommand.NewWebSocketExecutor(c.rest, "GET", address.String())
	if err != nil {
		return nil, err
	}
	executor, err := remotecommand.NewFallbackExecutor(socket, spdy, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
	if err != nil {
		return nil, err
	}
	var stdout, stderr bytes.Buffer
	err = executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: &stdout, Stderr: &stderr})
	if err != nil && stderr.Len() > 0 {
		err = fmt.Errorf("%w: %s", err, strings.TrimSpace(stderr.String()))
	}
	return stdout.Bytes(), err
}
