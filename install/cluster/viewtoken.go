package cluster

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"strait.io/strait/daemon/api"
)

// View is the name of the Deployment, the Service and the Secret of strait-view.
const View = api.ViewName

// MakeViewToken makes the Secret with the token of strait-view, unless there is one. An existing one is never
// changed: clients have read it.
func (c *Cluster) MakeViewToken(ctx context.Context) (changes []Change, err error) {
	_, err = get[corev1.Secret](ctx, c, secrets, c.Namespace, View)
	if !apierrors.IsNotFound(err) {
		return nil, err
	}
	var random [32]byte
	_, _ = rand.Read(random[:]) // never fails
	token := base64.RawURLEncoding.EncodeToString(random[:])
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
		"metadata": map[string]any{
			"name": View, "namespace": c.Namespace,
			"labels": map[string]any{partOf: Daemon, "app.kubernetes.io/name": "strait"},
		},
		"data": map[string]any{api.ViewTokenKey: base64.StdEncoding.EncodeToString([]byte(token))},
	}}
	_, err = c.objects.Resource(secrets).Namespace(c.Namespace).Create(ctx, o, metav1.CreateOptions{FieldManager: Manager})
	if apierrors.IsAlreadyExists(err) {
		return nil, nil // another install made it just now
	}
	if err != nil {
		return nil, fmt.Errorf("context %s: make Secret %s/%s: %w", c.Context, c.Namespace, View, err)
	}
	return []Change{change("created", o)}, nil
}
