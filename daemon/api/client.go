package api

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
)

// maxAnswer bounds what the client reads: 10,000 services with 10 endpoints are about 30 MB.
const maxAnswer = 256 << 20

// Client queries the straitd behind one unix socket. Its errors are all *Failure.
type Client struct {
	socket string
	http   *http.Client
}

// NewClient makes a client. It does not connect yet.
func NewClient(socket string) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}
	return &Client{socket, &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}}
}

// Status asks for the node's summary.
func (c *Client) Status(ctx context.Context) (*Status, error) {
	var a StatusAnswer
	if err := c.get(ctx, "status", "", KindStatus, &a, &a.Meta); err != nil {
		return nil, err
	}
	return &a.Status, nil
}

// Services asks for all imports and global services.
func (c *Client) Services(ctx context.Context) (*ServiceList, error) {
	var a ServiceList
	if err := c.get(ctx, "services", "", KindServices, &a, &a.Meta); err != nil {
		return nil, err
	}
	return &a, nil
}

// Backends asks for the backends of one service ("namespace/name"), or of all for "".
func (c *Client) Backends(ctx context.Context, service string) (*BackendList, error) {
	var a BackendList
	if err := c.get(ctx, "backends", service, KindBackends, &a, &a.Meta); err != nil {
		return nil, err
	}
	return &a, nil
}

// Nodes asks for all machines of the clusterset.
func (c *Client) Nodes(ctx context.Context) (*NodeList, error) {
	var a NodeList
	if err := c.get(ctx, "nodes", "", KindNodes, &a, &a.Meta); err != nil {
		return nil, err
	}
	return &a, nil
}

// Members asks for all clusters and nodes, with their keys and trust.
func (c *Client) Members(ctx context.Context) (*MemberList, error) {
	var a MemberList
	if err := c.get(ctx, "members", "", KindMembers, &a, &a.Meta); err != nil {
		return nil, err
	}
	return &a, nil
}

// Policies asks for this cluster's policies, with what they share.
func (c *Client) Policies(ctx context.Context) (*PolicyList, error) {
	var a PolicyList
	if err := c.get(ctx, "policies", "", KindPolicies, &a, &a.Meta); err != nil {
		return nil, err
	}
	return &a, nil
}

// Peers asks for the machines outside every cluster that have a pin.
func (c *Client) Peers(ctx context.Context) (*PeerList, error) {
	var a PeerList
	if err := c.get(ctx, "peers", "", KindPeers, &a, &a.Meta); err != nil {
		return nil, err
	}
	return &a, nil
}

// Explain asks why each endpoint of one service ("namespace/name") is in use or not, from this node or
// another: "NODE" or "CLUSTER/NODE".
func (c *Client) Explain(ctx context.Context, service, from string) (*Explanation, error) {
	var a Explanation
	if err := c.ask(ctx, "explain", url.Values{"service": {service}, "from": {from}}, KindExplanation, &a, &a.Meta); err != nil {
		return nil, err
	}
	return &a, nil
}

// WhatIf asks where connections from a node would go after a change, to one service, or to all for "".
func (c *Client) WhatIf(ctx context.Context, change, service, from string) (*WhatIf, error) {
	var a WhatIf
	if err := c.ask(ctx, "whatif", url.Values{"change": {change}, "service": {service}, "from": {from}}, KindWhatIf, &a, &a.Meta); err != nil {
		return nil, err
	}
	return &a, nil
}

func (c *Client) get(ctx context.Context, path, service, kind string, into any, meta *Meta) error {
	return c.ask(ctx, path, url.Values{"service": {service}}, kind, into, meta)
}

// ask sends a query; values that are empty are left out.
func (c *Client) ask(ctx context.Context, path string, query url.Values, kind string, into any, meta *Meta) error {
	maps.DeleteFunc(query, func(_ string, v []string) bool { return v[0] == "" })
	u := url.URL{Scheme: "http", Host: "strait", Path: "/v1/" + path, RawQuery: query.Encode()}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return fmt.Errorf("make request %s: %w", u.String(), err)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return dialFailure(ctx, c.socket, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return dialFailure(ctx, c.socket, err)
	}
	if response.StatusCode != http.StatusOK {
		return answerFailure(c.socket, response.StatusCode, body)
	}
	if err := json.Unmarshal(body, into); err != nil {
		return notStrait(c.socket, err)
	}
	if meta.APIVersion != APIVersion || meta.Kind != kind {
		return notStrait(c.socket, fmt.Errorf("answer is %q %q, want %q %q", meta.APIVersion, meta.Kind, APIVersion, kind))
	}
	return nil
}
