package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Digests returns the digests of the images that the daemon's pods run, as the nodes' runtimes
// report them, in order. There are several if nodes run different images: of two architectures, or
// because a tag was moved between two pulls.
func (c *Cluster) Digests(ctx context.Context) ([]string, error) {
	found, err := list[corev1.Pod](ctx, c, pods, c.Namespace, daemonPods)
	if err != nil {
		return nil, fmt.Errorf("context %s: list the daemon's pods: %w", c.Context, err)
	}
	return digests(found), nil
}

func digests(pods []corev1.Pod) (out []string) {
	for _, p := range pods {
		for _, s := range p.Status.ContainerStatuses {
			// NAME@DIGEST, or only the digest of the image's configuration if the image was loaded
			// from a file, which no registry knows.
			if _, digest, ok := strings.Cut(s.ImageID, "@"); ok && !slices.Contains(out, digest) {
				out = append(out, digest)
			}
		}
	}
	slices.Sort(out)
	return out
}
