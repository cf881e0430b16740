package node

import (
	"context"
	"strings"

	"strait.io/strait/cli"
	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/client"
)

// seen is what one node of a clusterset answered, or why it did not.
type seen struct {
	// Context is that of the kubeconfig, if the answer came by one.
	Context string `json:"context,omitempty"`
	Cluster string `json:"cluster,omitempty"`
	Node    string `json:"node,omitempty"`
	// Age is how old the answer was when the last one came, in seconds.
	Age    float64     `json:"age,omitempty"`
	Status *api.Status `json:"status,omitempty"`
	// Error and Try are why there is no answer, and what to do.
	Error string `json:"error,omitempty"`
	Try   string `json:"try,omitempty"`
	// Alone is why only this node of its cluster was asked; empty if all were.
	Alone string `json:"alone,omitempty"`
}

func (s seen) name() string {
	switch {
	case s.Cluster == "":
		return "context " + s.Context
	case s.Node == "":
		return s.Cluster
	}
	return s.Cluster + "/" + s.Node
}

// why is why there is no answer, without the name of the node.
func (s seen) why() string { return strings.TrimPrefix(s.Error, "node "+s.Node+": ") }

// statusList is the data of a status of several nodes.
type statusList struct {
	api.Meta
	Items []seen `json:"items"`
}

// askStatus asks for the status.
var askStatus = question[api.StatusAnswer]{path: "status", kind: api.KindStatus, one: oneStatus, from: func(s *api.StatusAnswer) api.Viewpoint { return s.Viewpoint() }}

func oneStatus(c *client.Client, ctx context.Context) (*api.StatusAnswer, error) {
	s, err := c.Status(ctx)
	if err != nil {
		return nil, err
	}
	return &api.StatusAnswer{Status: *s}, nil
}

// askEvery asks every node of the clusters that the flags choose for its status.
func askEvery(ctx context.Context, a *cli.App) []seen { return statuses(askEach(ctx, a, askStatus)) }

func statuses(answers []answered[api.StatusAnswer]) []seen {
	out := make([]seen, len(answers))
	for i, x := range answers {
		out[i] = seen{Context: x.Context, Cluster: x.Cluster, Node: x.Node, Age: x.age, Error: x.Error, Try: x.Try, Alone: x.Alone}
		if x.answer != nil {
			out[i].Status = &x.answer.Status
		}
	}
	return out
}

// showEvery prints the status of several nodes as one. If something is wrong, or could not be found
// out, its error has the exit code and no text.
func showEvery(a *cli.App, all []seen) error {
	done, err := a.Data(statusList{api.Meta{APIVersion: api.APIVersion, Kind: "StatusList"}, all})
	if err != nil {
		return err
	}
	if !done {
		printEvery(a, all)
	}
	for _, s := range all {
		if s.Alone != "" {
			a.Hint("of cluster %s, only node %s was asked: %s", s.Cluster, s.Node, cli.Clean(s.Alone))
		}
	}
	code := cli.ExitOK
	for _, s := range all {
		switch {
		case s.Status == nil && code == cli.ExitOK:
			code = cli.ExitUnknown
		case s.Status != nil && len(obstacles(*s.Status)) > 0:
			code = cli.ExitProblem
		}
	}
	if code != cli.ExitOK {
		return cli.Exit(code, nil)
	}
	return nil
}
