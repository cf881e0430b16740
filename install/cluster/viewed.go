package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/client"
)

// bindReader is what to do for a person who may not ask.
const bindReader = "have an administrator bind the Role strait-view-reader to you: docs/kubernetes.md says how"

// Daemons returns a client of the cluster's daemons: through the API server and strait-view if that
// is installed, or else by a command in the pod of one daemon, which takes the right to run
// commands in pods.
func (c *Cluster) Daemons(ctx context.Context) (*client.Client, error) {
	name := "context " + c.Context
	secret, err := get[corev1.Secret](ctx, c, secrets, c.Namespace, View)
	token := ""
	if err == nil {
		token = string(secret.Data[api.ViewTokenKey])
	}
	switch {
	case apierrors.IsNotFound(err):
		return c.anyDaemon(ctx)
	case apierrors.IsForbidden(err):
		if any, second := c.anyDaemon(ctx); second == nil {
			return any, nil
		}
		return nil, &api.Failure{Reason: api.Denied, Cause: err, Message: fmt.Sprintf("%s: %v", name, err), Try: bindReader}
	case err != nil:
		return nil, &api.Failure{Reason: api.NoAnswer, Cause: err, Message: fmt.Sprintf("%s: read the Secret %s/%s: %v", name, c.Namespace, View, err),
			Try: "check that the API server of this context answers: kubectl --context " + c.Context + " version"}
	}
	h, err := rest.HTTPClientFor(c.rest)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	host, _, err := rest.DefaultServerUrlFor(c.rest)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	base := host.JoinPath("api/v1/namespaces", c.Namespace, "services", api.ViewProxy, "proxy")
	return client.Over(viewed{base, h, token, name, c.Namespace, c.anyDaemon}, name), nil
}

// anyDaemon returns a client of one ready daemon, by commands in its pod.
func (c *Cluster) anyDaemon(ctx context.Context) (*client.Client, error) {
	all, err := c.daemons(ctx)
	switch {
	case apierrors.IsForbidden(err):
		return nil, &api.Failure{Reason: api.Denied, Cause: err, Message: err.Error(), Try: bindReader}
	case err != nil:
		return nil, &api.Failure{Reason: api.NoAnswer, Cause: err, Message: err.Error(),
			Try: "check that the API server of this context answers: kubectl --context " + c.Context + " version"}
	case len(all) == 0:
		return nil, &api.Failure{Reason: api.NoAnswer, Message: fmt.Sprintf("context %s: no daemon of strait is ready in namespace %s", c.Context, c.Namespace),
			Try: fmt.Sprintf("see why: kubectl --context %s -n %s get pods -o wide; or install strait: strait install --context %s", c.Context, c.Namespace, c.Context)}
	}
	return all[0].Client, nil
}

// viewed is the client.Transport through the API server's services/proxy.
type viewed struct {
	base  *url.URL
	http  *http.Client
	token string
	// name is that of the way in errors, and namespace that of strait-view.
	name, namespace string
	// otherwise opens another way, for API servers that do not reach strait-view.
	otherwise func(context.Context) (*client.Client, error)
}

// Get implements client.Transport.
func (v viewed) Get(ctx context.Context, path string) (io.ReadCloser, error) {
	asked, err := url.Parse(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", v.name, err)
	}
	u := v.base.JoinPath(asked.Path)
	u.RawQuery = asked.RawQuery
	var notReached *api.Failure
	body, err := client.Fetch(ctx, v.http, u.String(), http.Header{api.ViewTokenHeader: {v.token}},
		func(err error) error { return client.NoAnswer(ctx, v.name, err) },
		func(status int, body []byte) error {
			if notReached = v.refused(status, body); notReached != nil {
				return notReached
			}
			return client.Refused(v.name, status, body)
		})
	if notReached != nil && notReached.Reason == api.NoAnswer {
		if other, second := v.otherwise(ctx); second == nil {
			return other.Get(ctx, path)
		}
	}
	return body, err
}

// refused explains an answer that the API server gave in place of strait-view; nil if it is
// strait-view's own.
func (v viewed) refused(status int, body []byte) *api.Failure {
	var s metav1.Status
	if err := json.Unmarshal(body, &s); err != nil || s.Kind != "Status" {
		return nil
	}
	f := &api.Failure{Reason: api.NoAnswer, Cause: errors.New(s.Message), Message: fmt.Sprintf("%s: strait-view cannot be asked: %s", v.name, s.Message),
		Try: "see whether its pods run: kubectl -n " + v.namespace + " get pods -l app.kubernetes.io/component=view"}
	if status == http.StatusForbidden || status == http.StatusUnauthorized {
		f.Reason, f.Try = api.Denied, bindReader
	}
	return f
}
