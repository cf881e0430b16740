package kube

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// optOut is the annotation of pods whose connections are left alone.
const optOut = "strait.io/opt-out"

// Pods are what strait needs to know of this node's pods.
type Pods struct {
	// Known is false until they were read: before that, none does not mean none.
	Known bool
	// Addresses are those of pods that run and have a network of their own, sorted.
	Addresses []netip.Addr
	// OptOut are the UIDs of the pods that want to be left alone, sorted.
	OptOut []string
}

func readPods(all []*corev1.Pod) (out Pods) {
	for _, p := range all {
		if p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
			continue // its address may be another pod's already
		}
		if p.Annotations[optOut] == "true" {
			out.OptOut = append(out.OptOut, string(p.UID))
		}
		if p.Spec.HostNetwork {
			continue
		}
		for _, ip := range p.Status.PodIPs {
			if a, err := netip.ParseAddr(ip.IP); err == nil {
				out.Addresses = append(out.Addresses, a)
			}
		}
	}
	slices.SortFunc(out.Addresses, netip.Addr.Compare)
	slices.Sort(out.OptOut)
	return out
}
