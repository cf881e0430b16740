package support

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/client"
)

// Names returns the clusters of the bundle, in the order in which they were asked.
func (b *Bundle) Names() (out []string) {
	for _, c := range b.Clusters {
		out = append(out, c.Name)
	}
	return out
}

// Of returns a client that answers from the bundle, as the daemons of a cluster did, which is named
// by itself or by its context.
func (b *Bundle) Of(name string) (*client.Client, error) {
	i := slices.IndexFunc(b.Clusters, func(c Cluster) bool { return c.Name == name || c.Context != "" && c.Context == name })
	if i < 0 {
		return nil, &api.Failure{Reason: api.NotFound, Message: fmt.Sprintf("the bundle has no cluster %s", name),
			Try: "name one of its clusters with --context: " + strings.Join(b.Names(), ", ")}
	}
	return client.Over(from{b, b.Clusters[i]}, "the bundle"), nil
}

// from is the client.Transport of one cluster of a bundle.
type from struct {
	*Bundle
	cluster Cluster
}

// Get implements client.Transport.
func (f from) Get(_ context.Context, path string) (io.ReadCloser, error) {
	u, err := url.Parse(path)
	if err != nil {
		return nil, &api.Failure{Reason: api.BadRequest, Message: err.Error(), Try: "ask something else"}
	}
	q, name := u.Query(), strings.TrimPrefix(u.Path, "/v1/")
	if q.Has("from") || q.Has("at") || name == "whatif" || name == "ping" {
		return nil, &api.Failure{Reason: api.BadRequest, Message: "a bundle has what daemons answered, and computes nothing new",
			Try: "ask another node's own view with --node NODE, or ask a cluster that runs"}
	}
	if q.Get("node") == api.EveryNode {
		return f.everyNode(name)
	}
	node := q.Get("node")
	if cluster, rest, both := strings.Cut(node, "/"); both && cluster == f.cluster.Name {
		node = rest
	}
	if node == "" {
		node = f.cluster.Node
	}
	switch name {
	case "backends", "explain":
		return f.derived(name, node, q.Get("service"))
	case tunnels:
		return f.tunnels(q.Get("of"))
	case "history":
		return f.history(node, q)
	}
	answer, err := f.answer(node, name)
	if err != nil {
		return nil, err
	}
	return io.NopCloser(bytes.NewReader(answer)), nil
}

// answer returns what a node answered to a query.
func (f from) answer(node, path string) ([]byte, error) {
	if answer, has := f.answers[key(f.cluster.Name, node, path)]; has {
		return answer, nil
	}
	why, noted := f.cluster.Missing[node+"/"+path]
	if !noted {
		why, noted = f.cluster.Missing[path]
	}
	if noted {
		return nil, &api.Failure{Reason: api.NoAnswer, Message: fmt.Sprintf("node %s gave no answer when the bundle was made: %s", node, why), Try: "make another bundle"}
	}
	return nil, &api.Failure{Reason: api.NotFound, Message: fmt.Sprintf("the bundle has no answer of node %s of cluster %s to %s", node, f.cluster.Name, path),
		Try: "list its nodes: strait status --file BUNDLE"}
}

// derived returns what follows from the services of a node.
func (f from) derived(name, node, service string) (io.ReadCloser, error) {
	text, err := f.answer(node, "services")
	if err != nil {
		return nil, err
	}
	var list api.ServiceList
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, notThisVersion("services", err)
	}
	var answer any
	found := false
	if name == "backends" {
		answer, found = api.NewBackendList(&list, service)
	} else {
		answer, found = api.NewExplanation(&list, service)
	}
	if !found {
		f := &api.Failure{Reason: api.NotFound, Message: fmt.Sprintf("no cluster exported a service %s when the bundle was made", service), Try: "list all services: strait services --file BUNDLE"}
		if near := api.SimilarServices(list.Items, service); len(near) > 0 {
			f.Try = "did you mean " + strings.Join(near, ", ") + "?"
		}
		return nil, f
	}
	return encoded(answer)
}

// tunnels returns those of a node, or of all for "".
func (f from) tunnels(of string) (io.ReadCloser, error) {
	text, err := f.answer(f.cluster.Node, tunnels)
	if err != nil {
		return nil, err
	}
	var list api.TunnelList
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, notThisVersion("tunnels", err)
	}
	list.Items = slices.DeleteFunc(list.Items, func(t api.NodeTunnels) bool { return of != "" && t.Node != of })
	return encoded(list)
}

func notThisVersion(what string, err error) *api.Failure {
	return &api.Failure{Reason: api.NotStrait, Message: "the bundle's " + what + ": " + err.Error(), Try: "use the version of strait that made it", Cause: err}
}

// everyNode returns what all nodes of the cluster answered.
func (f from) everyNode(path string) (io.ReadCloser, error) {
	var items []api.NodeAnswer
	for k, answer := range f.answers {
		if node, is := strings.CutPrefix(k, f.cluster.Name+"/"); is {
			if node, is := strings.CutSuffix(node, "/"+path); is {
				items = append(items, api.NodeAnswer{Node: node, Status: http.StatusOK, Answer: answer})
			}
		}
	}
	for k, why := range f.cluster.Missing {
		if node, is := strings.CutSuffix(k, "/"+path); is {
			e := api.NewError(why, "make another bundle")
			items = append(items, api.NodeAnswer{Node: node, Status: http.StatusBadGateway, Error: &e})
		}
	}
	return encoded(api.NewNodeAnswerList(api.Viewpoint{Cluster: f.cluster.Name, Node: f.cluster.Node, Time: f.Time}, items))
}

func encoded(answer any) (io.ReadCloser, error) {
	text, err := json.Marshal(answer)
	if err != nil {
		return nil, &api.Failure{Reason: api.NotStrait, Message: err.Error(), Try: "make another bundle", Cause: err}
	}
	return io.NopCloser(bytes.NewReader(text)), nil
}
