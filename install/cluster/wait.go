package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// waitEvery is how often a wait checks.
const waitEvery = time.Second

// WaitDaemonSet waits until every pod of the DaemonSet has its current template and is ready. It
// calls report with the progress whenever that changes, and returns the number of pods. The error of a
// wait that ran out names what is missing.
func (c *Cluster) WaitDaemonSet(ctx context.Context, name string, report func(string)) (count int, err error) {
	last := ""
	err = poll(ctx, waitEvery, func() (bool, error) {
		ds, err := get[appsv1.DaemonSet](ctx, c, daemonSets, c.Namespace, name)
		if err != nil {
			return false, fmt.Errorf("context %s: read DaemonSet %s: %w", c.Context, name, err)
		}
		if count = int(ds.Status.DesiredNumberScheduled); rolledOut(ds) {
			return true, nil
		}
		now := fmt.Sprintf("%d of %d pods of %s are ready and up to date", min(ds.Status.NumberAvailable, ds.Status.UpdatedNumberScheduled), count, name)
		if why := c.whyNot(ctx, ds.Spec.Selector); why != "" {
			now += ": " + why
		}
		if now != last {
			last = now
			report(now)
		}
		return false, nil
	})
	if err != nil && errors.Is(err, context.Cause(ctx)) {
		if strings.Contains(last, "ImagePull") {
			last += "; load the image on the nodes, or use --image to name one that they can pull"
		}
		if strings.Contains(last, notYet) && name == Daemon {
			last += fmt.Sprintf("; to see why: kubectl --context %s -n %s exec POD -- /strait status", c.Context, c.Namespace)
		}
		err = fmt.Errorf("context %s: wait for DaemonSet %s/%s: %s: %w", c.Context, c.Namespace, name, cmp.Or(last, "it does not exist"), err)
	}
	return count, err
}

// Outdated counts the DaemonSet's pods that do not have its current template. For a DaemonSet with
// the strategy OnDelete, such a pod is replaced when the user deletes it.
func (c *Cluster) Outdated(ctx context.Context, name string) (int, error) {
	ds, err := get[appsv1.DaemonSet](ctx, c, daemonSets, c.Namespace, name)
	if err != nil {
		return 0, fmt.Errorf("context %s: read DaemonSet %s: %w", c.Context, name, err)
	}
	return int(ds.Status.DesiredNumberScheduled - ds.Status.UpdatedNumberScheduled), nil
}

func rolledOut(ds *appsv1.DaemonSet) bool {
	s, updated := ds.Status, ds.Status.UpdatedNumberScheduled
	if ds.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType {
		updated = s.DesiredNumberScheduled // the user replaces them, when it suits
	}
	return s.ObservedGeneration >= ds.Generation && updated == s.DesiredNumberScheduled && s.NumberAvailable == s.DesiredNumberScheduled
}

// WaitLeader waits until the pods of strait-leader have their current template and are ready. Call it
// only if there are nodes that can run them.
func (c *Cluster) WaitLeader(ctx context.Context, report func(string)) (count int, err error) {
	last := ""
	err = poll(ctx, waitEvery, func() (bool, error) {
		d, err := get[appsv1.Deployment](ctx, c, deployments, c.Namespace, Leader)
		if err != nil {
			return false, fmt.Errorf("context %s: read Deployment %s: %w", c.Context, Leader, err)
		}
		s := d.Status
		if count = int(*d.Spec.Replicas); s.ObservedGeneration >= d.Generation && int(s.UpdatedReplicas) == count && int(s.Replicas) == count && int(s.AvailableReplicas) == count {
			return true, nil
		}
		now := fmt.Sprintf("%d of %d pods of %s are ready and up to date", min(s.AvailableReplicas, s.UpdatedReplicas), count, Leader)
		if why := c.whyNot(ctx, d.Spec.Selector); why != "" {
			now += ": " + why
		}
		if now != last {
			last = now
			report(now)
		}
		return false, nil
	})
	if err != nil && errors.Is(err, context.Cause(ctx)) {
		err = fmt.Errorf("context %s: wait for Deployment %s/%s: %s: %w", c.Context, c.Namespace, Leader, cmp.Or(last, "it does not exist"), err)
	}
	return count, err
}

// whyNot names the pods that are not ready, with their reasons.
func (c *Cluster) whyNot(ctx context.Context, of *metav1.LabelSelector) string {
	return c.whyNotIn(ctx, c.Namespace, metav1.FormatLabelSelector(of))
}

// whyNotIn is whyNot for the pods of a namespace.
func (c *Cluster) whyNotIn(ctx context.Context, namespace, selector string) string {
	found, err := list[corev1.Pod](ctx, c, pods, namespace, selector)
	if err != nil {
		return ""
	}
	var why []string
	for _, p := range found {
		if reason := notReady(&p); reason != "" {
			why = append(why, fmt.Sprintf("%s: %s", cmp.Or(p.Spec.NodeName, p.Name), reason))
		}
	}
	slices.Sort(why)
	if n := len(why); n > 3 {
		why = append(why[:3], fmt.Sprintf("and %d more", n-3))
	}
	return strings.Join(why, "; ")
}

// notYet is the reason for which only the pod itself knows more.
const notYet = "runs but is not ready yet"

// notReady returns why a pod is not ready; empty if it is.
func notReady(p *corev1.Pod) string {
	if p.DeletionTimestamp != nil {
		return "it is being stopped"
	}
	for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		switch {
		case s.State.Waiting != nil && s.State.Waiting.Reason != "PodInitializing":
			return strings.TrimSpace(s.State.Waiting.Reason + " " + s.State.Waiting.Message)
		case s.State.Terminated != nil && s.State.Terminated.ExitCode != 0:
			return fmt.Sprintf("%s ended with exit code %d: kubectl -n %s logs %s -c %s", s.Name, s.State.Terminated.ExitCode, p.Namespace, p.Name, s.Name)
		}
	}
	for _, cond := range p.Status.Conditions {
		if cond.Type == corev1.PodReady && cond.Status == corev1.ConditionTrue {
			return ""
		}
		if cond.Type == corev1.PodScheduled && cond.Status == corev1.ConditionFalse {
			return "not scheduled: " + cond.Message
		}
	}
	if p.Status.Phase == corev1.PodRunning {
		return p.Name + " " + notYet
	}
	return string(p.Status.Phase)
}

// waitGone waits until no pod matches the selector.
func (c *Cluster) waitGone(ctx context.Context, selector string) error {
	err := poll(ctx, waitEvery, func() (bool, error) {
		left, err := list[corev1.Pod](ctx, c, pods, c.Namespace, selector)
		return err == nil && len(left) == 0, err
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("context %s: wait for the pods %s to end: %w", c.Context, selector, err)
	}
	return nil
}
