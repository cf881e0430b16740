package client

import (
	"context"

	"strait.io/strait/daemon/api"
)

// Flows asks who calls one service ("namespace/name") from the node, or all for "".
func (c *Client) Flows(ctx context.Context, service string) (*api.FlowList, error) {
	var a api.FlowList
	if err := c.get(ctx, "flows", service, api.KindFlows, &a, &a.Meta); err != nil {
		return nil, err
	}
	return &a, nil
}

// Traffic asks for the sums of what the node's clients do with each service.
func (c *Client) Traffic(ctx context.Context) (*api.TrafficList, error) {
	var a api.TrafficList
	if err := c.get(ctx, "traffic", "", api.KindTraffic, &a, &a.Meta); err != nil {
		return nil, err
	}
	return &a, nil
}
