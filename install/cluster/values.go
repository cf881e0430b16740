package cluster

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/yaml"
)

// valuesName is the ConfigMap that keeps the values of the last install, for the next.
const valuesName = "strait-values"

// Values returns the values of the last install or upgrade; found is false if there was none.
func (c *Cluster) Values(ctx context.Context) (values map[string]any, found bool, err error) {
	m, err := get[corev1.ConfigMap](ctx, c, configMaps, c.Namespace, valuesName)
	if apierrors.IsNotFound(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("context %s: read ConfigMap %s/%s: %w", c.Context, c.Namespace, valuesName, err)
	}
	if err := yaml.Unmarshal([]byte(m.Data["values.yaml"]), &values); err != nil {
		return nil, true, fmt.Errorf("context %s: read ConfigMap %s/%s: values.yaml: %w", c.Context, c.Namespace, valuesName, err)
	}
	return values, true, nil
}

// ValuesObject returns the ConfigMap that keeps the values.
func (c *Cluster) ValuesObject(values []byte) []byte {
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": valuesName, "namespace": c.Namespace, "labels": map[string]any{partOf: Daemon}},
		"data":     map[string]any{"values.yaml": string(values)},
	})
	if err != nil {
		panic("encode values: " + err.Error()) // plain data
	}
	return text
}
