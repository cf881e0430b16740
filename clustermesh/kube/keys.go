package kube

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"strait.io/strait/clustermesh/written"
)

// keptLabels are those of what is made once, and never changed by strait's daemons. It has no label of what the
// chart renders: an upgrade would remove it.
var keptLabels = map[string]string{"app.kubernetes.io/name": "strait"}

// MakeSecret creates a Secret, unless there is one of that name.
func (c Client) MakeSecret(ctx context.Context, namespace, name string, data map[string][]byte) error {
	_, err := c.builtin.Secrets(namespace).Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: keptLabels}, Type: corev1.SecretTypeOpaque, Data: data,
	}, metav1.CreateOptions{})
	return made("Secret", namespace, name, err)
}

// MakeConfigMap creates a ConfigMap, unless there is one of that name.
func (c Client) MakeConfigMap(ctx context.Context, namespace, name string, data map[string]string) error {
	_, err := c.builtin.ConfigMaps(namespace).Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: keptLabels}, Data: data,
	}, metav1.CreateOptions{})
	return made("ConfigMap", namespace, name, err)
}

// WriteConfigMap writes a ConfigMap of strait's own, whatever it said before.
func (c Client) WriteConfigMap(ctx context.Context, namespace, name string, data map[string]string) error {
	wanted := &unstructured.Unstructured{}
	wanted.SetAPIVersion("v1")
	wanted.SetKind("ConfigMap")
	wanted.SetName(name)
	wanted.SetLabels(keptLabels)
	err := unstructured.SetNestedStringMap(wanted.Object, data, "data")
	if err == nil {
		_, err = c.dynamic.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace(namespace).
			Apply(ctx, name, wanted, metav1.ApplyOptions{FieldManager: written.Manager, Force: true})
	}
	if err != nil {
		return fmt.Errorf("write ConfigMap %s/%s: %w", namespace, name, err)
	}
	return nil
}

func made(kind, namespace, name string, err error) error {
	if err == nil || apierrors.IsAlreadyExists(err) {
		return nil
	}
	return fmt.Errorf("create %s %s/%s: %w", kind, namespace, name, err)
}
