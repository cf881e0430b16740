package support

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/client"
)

// Collect asks the daemons of one cluster, by a context if that has a name, and adds their answers.
// What is not answered is noted in the manifest. The error is why nothing of the cluster is there.
func (b *Bundle) Collect(ctx context.Context, c *client.Client, name string) error {
	status, err := c.Status(ctx)
	if err != nil {
		return err
	}
	cluster := Cluster{Name: status.Cluster, Context: name, Node: status.Node, Missing: map[string]string{}}
	for _, path := range Paths {
		b.collect(ctx, c, &cluster, path)
	}
	var refused *api.Failure
	if body, err := get(ctx, c, "/v1/"+tunnels); err == nil {
		b.add(&cluster, cluster.Node, tunnels, body)
	} else if !errors.As(err, &refused) || refused.Reason != api.BadRequest {
		cluster.Missing[tunnels] = err.Error()
	}
	b.Clusters = append(b.Clusters, cluster)
	return nil
}

// collect adds the answers of all nodes to one query or, where only one daemon can be asked, that
// of this one.
func (b *Bundle) collect(ctx context.Context, c *client.Client, cluster *Cluster, path string) {
	var all api.NodeAnswerList
	body, err := get(ctx, c, "/v1/"+path+"?node=%2A")
	if err == nil {
		err = json.Unmarshal(body, &all)
	}
	if err != nil || all.Kind != api.KindNodeAnswers {
		body, second := get(ctx, c, "/v1/"+path)
		if second != nil {
			cluster.Missing[path] = second.Error()
			return
		}
		b.add(cluster, cluster.Node, path, body)
		cluster.Missing[path] = fmt.Sprintf("only node %s was asked: %v", cluster.Node, err)
		return
	}
	for _, item := range all.Items {
		if item.Error != nil {
			cluster.Missing[item.Node+"/"+path] = item.Error.Message
			continue
		}
		b.add(cluster, item.Node, path, item.Answer)
	}
}

func (b *Bundle) add(cluster *Cluster, node, path string, body []byte) {
	answers, size := b.Size()
	if answers >= maxFiles-1 || size+len(body) > maxBytes {
		cluster.Missing[node+"/"+path] = fmt.Sprintf("left out: the bundle has %d answers and %d MiB already", answers, size>>20)
		return
	}
	b.answers[key(cluster.Name, node, path)] = body
}

func get(ctx context.Context, t client.Transport, path string) ([]byte, error) {
	body, err := t.Get(ctx, path)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	return io.ReadAll(io.LimitReader(body, maxBytes))
}
