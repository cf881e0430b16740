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

// question is what every node is asked: a path with the kind of its answer A, about one service or, for
// "", all. one asks it of one node.
type question[A any] struct {
	path, kind, service string
	one                 func(c *client.Client, ctx context.Context) (*A, error)
	from                func(*A) api.Viewpoint
	// every asks it of all nodes of a cluster; nil if the path and the service are all that is asked.
	every func(c *client.Client, ctx context.Context) (*api.NodeAnswerList, error)
}

// answered is what one node answered, or why it did not.
type answered[A any] struct {
	api.AskedNode
	answer *A
	age    float64 // of the answer when the last one came, in seconds
}

// askEach asks every node of the clusters of the contexts, at the same time; without contexts, of the
// cluster whose daemon answers without one.
func askEach[A any](ctx context.Context, a *cli.App, q question[A]) []answered[A] {
	if len(a.From.Each()) == 0 {
		one := *a
		return q.everyNode(ctx, &one, "")
	}
	answers := make([][]answered[A], len(a.From.Each()))
	a.Across(func(i int, one *cli.App) { answers[i] = q.everyNode(ctx, one, one.From.Contexts[0]) })
	return inOrder(answers)
}

// inOrder returns what the nodes of several clusters answered, by cluster and node, each node once.
func inOrder[A any](answers [][]answered[A]) []answered[A] {
	out := slices.Concat(answers...)
	slices.SortStableFunc(out, func(a, b answered[A]) int {
		return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Node, b.Node))
	})
	// Two contexts can lead to one cluster.
	return slices.CompactFunc(out, func(a, b answered[A]) bool { return a.Node != "" && a.Cluster == b.Cluster && a.Node == b.Node })
}

// everyNode returns what the nodes of one cluster answer.
func (q question[A]) everyNode(ctx context.Context, a *cli.App, name string) []answered[A] {
	a.From.Node = ""
	if _, err := a.Way(ctx); err != nil {
		return []answered[A]{unanswered[A](name, err)}
	}
	every := q.every
	if every == nil {
		every = func(c *client.Client, ctx context.Context) (*api.NodeAnswerList, error) {
			return c.Every(ctx, q.path, q.service)
		}
	}
	list, err := cli.Ask(ctx, a, every)
	if err != nil {
		// By commands in a pod, only its node answers.
		answer, second := cli.Ask(ctx, a, q.one)
		if second != nil {
			return []answered[A]{unanswered[A](name, err)}
		}
		from := q.from(answer)
		return []answered[A]{{AskedNode: api.AskedNode{Context: name, Cluster: from.Cluster, Node: from.Node, Alone: unanswered[A](name, err).Error}, answer: answer}}
	}
	out := make([]answered[A], len(list.Items))
	for i, item := range list.Items {
		x := answered[A]{AskedNode: api.AskedNode{Context: name, Cluster: list.SeenFrom.Cluster, Node: item.Node}, age: item.Age}
		var body struct{ api.Meta }
		answer := new(A)
		switch {
		case item.Error != nil:
			x.Error, x.Try = item.Error.Message, item.Error.Try
		case json.Unmarshal(item.Answer, &body) != nil || body.Kind != q.kind || json.Unmarshal(item.Answer, answer) != nil:
			x.Error, x.Try = "its answer is not from this version of strait", "check that all nodes run the same version: strait version"
		default:
			x.answer = answer
		}
		out[i] = x
	}
	return out
}

// missing returns why nodes did not answer, sorted.
func missing[A any](all []answered[A]) (out []string) {
	for _, x := range all {
		if x.Alone != "" {
			out = append(out, x.Alone)
		}
		switch {
		case x.Error != "" && x.Node != "":
			out = append(out, "node "+x.Node+": "+strings.TrimPrefix(x.Error, "node "+x.Node+": "))
		case x.Error != "":
			out = append(out, x.Error)
		}
	}
	slices.Sort(out)
	return out
}

func unanswered[A any](context string, err error) (out answered[A]) {
	out.Context = context
	out.Error, out.Try = cli.Explained(err)
	return out
}
