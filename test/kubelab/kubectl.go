package kubelab

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"sigs.k8s.io/mcs-api/config/crd"
)

// Kubectl runs kubectl as the cluster's administrator, and returns its stdout. The error includes
// its stderr.
func (l *Lab) Kubectl(ctx context.Context, cluster string, stdin []byte, args ...string) (string, error) {
	return run(ctx, stdin, append([]string{l.program("kubectl"), "--kubeconfig", l.ConfigOf(cluster), "--cache-dir", l.KubectlCache()}, args...)...)
}

// KubectlCache is the folder in which kubectl keeps what the API servers serve. In the user's own
// it would stay, and grow by a few files with each lab.
func (l *Lab) KubectlCache() string { return l.path("kubectl-cache") }

// Apply applies YAML as users do.
func (l *Lab) Apply(ctx context.Context, cluster, yaml string) error {
	_, err := l.Kubectl(ctx, cluster, []byte(yaml), "apply", "-f", "-")
	return err
}

// applyBase creates the objects that must exist before nodes start: the MCS API's CRDs, and the
// Node objects with their podCIDRs.
func (l *Lab) applyBase(ctx context.Context, c *Cluster) error {
	nodes, err := render("nodes.yaml", c)
	if err != nil {
		return err
	}
	return l.Apply(ctx, c.Name, strings.Join([]string{
		NewestCRDs(), string(nodes),
	}, "\n---\n"))
}

// NewestCRDs returns the CRDs of the MCS API that every cluster starts with: v1beta1 and v1alpha1.
func NewestCRDs() string {
	return string(crd.ServiceExportCRD) + "\n---\n" + string(crd.ServiceImportCRD)
}

// OldestCRDs are the CRDs of mcs-api v0.1.0, which have only v1alpha1.
//
//go:embed config/mcs-v0.1.0.yaml
var OldestCRDs string

// ReplaceCRDs deletes the CRDs of the MCS API, and with them every export and import, and installs
// others in their place. It returns when those are served.
func (l *Lab) ReplaceCRDs(ctx context.Context, cluster, yaml string) error {
	names := []string{"crd/serviceexports.multicluster.x-k8s.io", "crd/serviceimports.multicluster.x-k8s.io"}
	if _, err := l.Kubectl(ctx, cluster, nil, append([]string{"delete", "--ignore-not-found", "--wait"}, names...)...); err != nil {
		return err
	}
	if err := l.Apply(ctx, cluster, yaml); err != nil {
		return err
	}
	_, err := l.Kubectl(ctx, cluster, nil, append([]string{"wait", "--for=condition=Established", "--timeout=" + readyWithin.String()}, names...)...)
	return err
}

func (l *Lab) applyDNS(ctx context.Context, c *Cluster) error {
	text, err := render("coredns.yaml", c)
	if err != nil {
		return err
	}
	return l.Apply(ctx, c.Name, string(text))
}

// awaitReady waits until every node is Ready and CoreDNS answers.
func (l *Lab) awaitReady(ctx context.Context, c *Cluster) error {
	within := "--timeout=" + readyWithin.String()
	for _, what := range [][]string{
		{"wait", "node", "--all", "--for=condition=Ready", within},
		{"-n", "kube-system", "rollout", "status", "deployment/coredns", within},
	} {
		if _, err := l.Kubectl(ctx, c.Name, nil, what...); err != nil {
			return fmt.Errorf("wait for nodes and CoreDNS; see %s: %w", l.path("log"), err)
		}
	}
	return nil
}
