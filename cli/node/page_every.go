package node

import (
	"context"
	"slices"
	"sync"

	"strait.io/strait/daemon/api"
)

// every asks all nodes of all clusters, or the one node that --node names. It is an error if the way
// to every cluster is closed; otherwise what did not answer is in the list.
func every[A any](ctx context.Context, p *page, q question[A]) ([]answered[A], error) {
	answers, errs := make([][]answered[A], len(p.places)), make([]error, len(p.places))
	var wg sync.WaitGroup
	for i, at := range p.places {
		wg.Go(func() { answers[i], errs[i] = everyIn(ctx, at, q) })
	}
	wg.Wait()
	if !slices.Contains(errs, nil) {
		return nil, errs[0]
	}
	for i, err := range errs {
		if err != nil {
			answers[i] = []answered[A]{unanswered[A](p.places[i].context, err)}
		}
	}
	return inOrder(answers), nil
}

// everyIn asks all nodes of one cluster, or the one that --node names.
func everyIn[A any](ctx context.Context, at *place, q question[A]) ([]answered[A], error) {
	if at.closed.From.Node != "" {
		answer, err := ask(ctx, at, q.one)
		if err != nil {
			return nil, err
		}
		from := q.from(answer)
		return []answered[A]{{AskedNode: api.AskedNode{Context: at.context, Cluster: from.Cluster, Node: from.Node}, answer: answer}}, nil
	}
	one, err := at.way(ctx)
	if err != nil {
		return nil, err
	}
	all := q.everyNode(ctx, &one, at.context)
	if len(all) == 1 && all[0].Cluster == "" {
		_, err := ask(ctx, at, q.one) // its error has the reason, and closes the way
		return all, err
	}
	return all, nil
}
