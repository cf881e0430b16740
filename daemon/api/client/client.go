// Package client asks a daemon and decodes its answers, or explains why there is none.
//
// Inputs are questions and a Transport, which leads to the daemon; outputs are the answers of
// package api, or an *api.Failure. It must not know how answers are computed or shown, nor
// Kubernetes.
package client

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/url"
	"time"

	"strait.io/strait/daemon/api"
)

// maxAnswer bounds what the client reads: 10,000 services with 10 endpoints are about 30 MB.
const maxAnswer = 256 << 20

// Transport leads to one daemon: by its socket (OnSocket), or by commands that run beside it
// (OnCommands).
type Transport interface {
	// Get requests a path of the daemon's API, such as "/v1/explain?service=shop%2Fcart", and
	// returns the body of the answer, which the caller closes. The error is an *api.Failure: why
	// there is no answer, or why the daemon refuses the request.
	Get(ctx context.Context, path string) (io.ReadCloser, error)
}

// Client asks one daemon. Its errors are all *api.Failure.
type Client struct {
	name      string // of the daemon, in errors
	transport Transport
	node      string // of the daemon that answers; empty for the one that is asked
}

// Over makes a client of the daemon to which the transport leads. The name is that of the daemon in
// errors: the path of its socket, or its node.
func Over(t Transport, name string) *Client { return &Client{name: name, transport: t} }

// At makes a client that has the daemon of another node of the cluster answer, NODE or
// CLUSTER/NODE, by the one that this client asks; the same client for "".
func (c *Client) At(node string) *Client {
	at := *c
	at.node = node
	return &at
}

// Get implements Transport.
func (c *Client) Get(ctx context.Context, path string) (io.ReadCloser, error) {
	return c.transport.Get(ctx, path)
}

// Local reports whether the client asks by a socket of this machine.
func (c *Client) Local() bool {
	_, is := c.transport.(socket)
	return is
}

// Status asks for the node's summary.
func (c *Client) Status(ctx context.Context) (*api.Status, error) {
	var a api.StatusAnswer
	if err := c.get(ctx, "status", "", api.KindStatus, &a, &a.Meta); err != nil {
		return nil, err
	}
	return &a.Status, nil
}

// Every asks every node of the cluster for the answer to a path, such as "status"; about one service, or
// all for "".
func (c *Client) Every(ctx context.Context, path, service string) (*api.NodeAnswerList, error) {
	var a api.NodeAnswerList
	if err := c.At(api.EveryNode).get(ctx, path, service, api.KindNodeAnswers, &a, &a.Meta); err != nil {
		return nil, err
	}
	return &a, nil
}

// EveryNodes asks every node of the cluster for all machines of the clusterset, as it sees them.
func (c *Client) EveryNodes(ctx context.Context) (*api.NodeAnswerList, error) {
	var a api.NodeAnswerList
	if err := c.At(api.EveryNode).get(ctx, "nodes", "", api.KindNodeAnswers, &a, &a.Meta); err != nil {
		return nil, err
	}
	return &a, nil
}

// Services asks for all imports and global services.
func (c *Client) Services(ctx context.Context) (*api.ServiceList, error) {
	var a api.ServiceList
	if err := c.get(ctx, "services", "", api.KindServices, &a, &a.Meta); err != nil {
		return nil, err
	}
	return &a, nil
}

// Backends asks for the backends of one service ("namespace/name"), or of all for "".
func (c *Client) Backends(ctx context.Context, service string) (*api.BackendList, error) {
	var a api.BackendList
	if err := c.get(ctx, "backends", service, api.KindBackends, &a, &a.Meta); err != nil {
		return nil, err
	}
	return &a, nil
}

// Nodes asks for all machines of the clusterset.
func (c *Client) Nodes(ctx context.Context) (*api.NodeList, error) {
	var a api.NodeList
	if err := c.get(ctx, "nodes", "", api.KindNodes, &a, &a.Meta); err != nil {
		return nil, err
	}
	return &a, nil
}

// Tunnels asks for the tunnels between the nodes of the clusterset: of one node ("cluster/node"),
// or of all for "".
func (c *Client) Tunnels(ctx context.Context, node string) (*api.TunnelList, error) {
	var a api.TunnelList
	if err := c.ask(ctx, "tunnels", url.Values{"of": {node}}, api.KindTunnels, &a, &a.Meta); err != nil {
		return nil, err
	}
	return &a, nil
}

// Members asks for all clusters and nodes, with their keys and trust.
func (c *Client) Members(ctx context.Context) (*api.MemberList, error) {
	var a api.MemberList
	if err := c.get(ctx, "members", "", api.KindMembers, &a, &a.Meta); err != nil {
		return nil, err
	}
	return &a, nil
}

// Policies asks for this cluster's policies, with what they share.
func (c *Client) Policies(ctx context.Context) (*api.PolicyList, error) {
	var a api.PolicyList
	if err := c.get(ctx, "policies", "", api.KindPolicies, &a, &a.Meta); err != nil {
		return nil, err
	}
	return &a, nil
}

// Peers asks for the machines outside every cluster that have a pin.
func (c *Client) Peers(ctx context.Context) (*api.PeerList, error) {
	var a api.PeerList
	if err := c.get(ctx, "peers", "", api.KindPeers, &a, &a.Meta); err != nil {
		return nil, err
	}
	return &a, nil
}

// Explain asks why each endpoint of one service ("namespace/name") is in use or not, from this node or
// another: "NODE" or "CLUSTER/NODE".
func (c *Client) Explain(ctx context.Context, service, from string) (*api.Explanation, error) {
	var a api.Explanation
	if err := c.ask(ctx, "explain", url.Values{"service": {service}, "from": {from}}, api.KindExplanation, &a, &a.Meta); err != nil {
		return nil, err
	}
	return &a, nil
}

// ExplainAt is Explain for a moment of the past, as the daemon noted it.
func (c *Client) ExplainAt(ctx context.Context, service, from string, at time.Time) (*api.Explanation, error) {
	var a api.Explanation
	query := url.Values{"service": {service}, "from": {from}, "at": {at.UTC().Format(time.RFC3339Nano)}}
	if err := c.ask(ctx, "explain", query, api.KindExplanation, &a, &a.Meta); err != nil {
		return nil, err
	}
	return &a, nil
}

// History asks what changed and why.
func (c *Client) History(ctx context.Context, q api.HistoryQuery) (*api.History, error) {
	var a api.History
	if err := c.ask(ctx, "history", historyQuery(q), api.KindHistory, &a, &a.Meta); err != nil {
		return nil, err
	}
	return &a, nil
}

// EveryHistory asks every node of the cluster what changed and why.
func (c *Client) EveryHistory(ctx context.Context, q api.HistoryQuery) (*api.NodeAnswerList, error) {
	var a api.NodeAnswerList
	if err := c.At(api.EveryNode).ask(ctx, "history", historyQuery(q), api.KindNodeAnswers, &a, &a.Meta); err != nil {
		return nil, err
	}
	return &a, nil
}

// Logs asks for the last lines of a daemon's log.
func (c *Client) Logs(ctx context.Context) (*api.LogList, error) {
	var a api.LogList
	if err := c.get(ctx, "logs", "", api.KindLogs, &a, &a.Meta); err != nil {
		return nil, err
	}
	return &a, nil
}

func historyQuery(q api.HistoryQuery) url.Values {
	v := url.Values{"name": {q.Name}}
	for name, t := range map[string]time.Time{"since": q.Since, "until": q.Until} {
		if !t.IsZero() {
			v.Set(name, t.UTC().Format(time.RFC3339Nano))
		}
	}
	return v
}

// WhatIf asks where connections from a node would go after a change, to one service, or to all for "".
func (c *Client) WhatIf(ctx context.Context, change, service, from string) (*api.WhatIf, error) {
	var a api.WhatIf
	if err := c.ask(ctx, "whatif", url.Values{"change": {change}, "service": {service}, "from": {from}}, api.KindWhatIf, &a, &a.Meta); err != nil {
		return nil, err
	}
	return &a, nil
}

// Ping has a daemon ask a node, a pod or a service for an answer.
func (c *Client) Ping(ctx context.Context, to string) (*api.Ping, error) {
	var a api.Ping
	if err := c.ask(ctx, "ping", url.Values{"to": {to}}, api.KindPing, &a, &a.Meta); err != nil {
		return nil, err
	}
	return &a, nil
}

func (c *Client) get(ctx context.Context, path, service, kind string, into any, meta *api.Meta) error {
	return c.ask(ctx, path, url.Values{"service": {service}}, kind, into, meta)
}

// ask sends a query; values that are empty are left out.
func (c *Client) ask(ctx context.Context, path string, query url.Values, kind string, into any, meta *api.Meta) error {
	query.Set("node", c.node)
	maps.DeleteFunc(query, func(_ string, v []string) bool { return v[0] == "" })
	u := url.URL{Path: "/v1/" + path, RawQuery: query.Encode()}
	body, err := c.transport.Get(ctx, u.String())
	if err != nil {
		return err
	}
	defer body.Close()
	text, err := io.ReadAll(io.LimitReader(body, maxAnswer))
	if err != nil {
		return NoAnswer(ctx, c.name, err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		return notStrait(c.name, err)
	}
	if meta.APIVersion != api.APIVersion || meta.Kind != kind {
		return notStrait(c.name, fmt.Errorf("answer is %q %q, want %q %q", meta.APIVersion, meta.Kind, api.APIVersion, kind))
	}
	return nil
}
