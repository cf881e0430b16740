package node

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
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

// askEvery asks every node of the clusters of the contexts, at the same time; without contexts, of
// the cluster whose daemon answers without one.
func askEvery(ctx context.Context, a *cli.App) []seen {
	if len(a.From.Each()) == 0 {
		one := *a
		return everyNode(ctx, &one, "")
	}
	answers := make([][]seen, len(a.From.Each()))
	a.Across(func(i int, one *cli.App) { answers[i] = everyNode(ctx, one, one.From.Contexts[0]) })
	return inOrder(answers)
}

// inOrder returns what the nodes of several clusters answered, by cluster and node, each node once.
func inOrder(answers [][]seen) []seen {
	out := slices.Concat(answers...)
	slices.SortStableFunc(out, func(a, b seen) int {
		return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Node, b.Node))
	})
	// Two contexts can lead to one cluster.
	return slices.CompactFunc(out, func(a, b seen) bool { return a.Node != "" && a.Cluster == b.Cluster && a.Node == b.Node })
}

// everyNode returns what the nodes of one cluster answer.
func everyNode(ctx context.Context, a *cli.App, name string) []seen {
	a.From.Node = ""
	if _, err := a.Way(ctx); err != nil {
		return []seen{unanswered(name, err)}
	}
	list, err := cli.Ask(ctx, a, (*client.Client).EveryStatus)
	if err != nil {
		// By commands in a pod, only its node answers.
		status, second := cli.Ask(ctx, a, (*client.Client).Status)
		if second != nil {
			return []seen{unanswered(name, err)}
		}
		return []seen{{Context: name, Cluster: status.Cluster, Node: status.Node, Status: status, Alone: unanswered(name, err).Error}}
	}
	out := make([]seen, len(list.Items))
	for i, item := range list.Items {
		s := seen{Context: name, Cluster: list.SeenFrom.Cluster, Node: item.Node, Age: item.Age}
		var answer api.StatusAnswer
		switch {
		case item.Error != nil:
			s.Error, s.Try = item.Error.Message, item.Error.Try
		case json.Unmarshal(item.Answer, &answer) != nil || answer.Kind != api.KindStatus:
			s.Error, s.Try = "its answer is not from this version of strait", "check that all nodes run the same version: strait version"
		default:
			s.Status = &answer.Status
		}
		out[i] = s
	}
	return out
}

func unanswered(context string, err error) seen {
	s := seen{Context: context}
	s.Error, s.Try = cli.Explained(err)
	return s
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
