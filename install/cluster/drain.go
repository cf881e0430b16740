package cluster

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"strait.io/strait/daemon/api"
)

// AnnotateNamespace sets an annotation of strait's Namespace, or removes it if the value is empty.
func (c *Cluster) AnnotateNamespace(ctx context.Context, key, value string) error {
	set := map[string]any{key: nil}
	if value != "" {
		set[key] = value
	}
	text, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": set}})
	if err != nil {
		return err
	}
	_, err = c.objects.Resource(resource("", "v1", "namespaces")).Patch(ctx, c.Namespace, types.MergePatchType, text, metav1.PatchOptions{FieldManager: Manager})
	if err != nil {
		return fmt.Errorf("context %s: annotate Namespace %s: %w", c.Context, c.Namespace, err)
	}
	return nil
}

// WhatIf asks the first ready daemon where connections would go after a change.
func (c *Cluster) WhatIf(ctx context.Context, change string) (*api.WhatIf, error) {
	daemons, err := c.daemons(ctx)
	if err != nil {
		return nil, err
	}
	if len(daemons) == 0 {
		return nil, fmt.Errorf("context %s: no daemon is ready; kubectl -n %s get pods", c.Context, c.Namespace)
	}
	answer, err := daemons[0].WhatIf(ctx, change, "", "")
	if err != nil {
		return nil, fmt.Errorf("context %s: ask the daemon on %s: %w", c.Context, daemons[0].node, err)
	}
	return answer, nil
}
