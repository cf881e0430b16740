package object

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// AnnotationOptOut with the value "true" keeps strait from balancing a pod's connections.
const AnnotationOptOut = "strait.io/opt-out"

// Pods are what strait needs to know of a node's pods.
type Pods struct {
	// Known is false until the pods have been read. Until then, empty lists do not mean that there
	// are none.
	Known bool
	// Addresses are those of pods that have not terminated and have a network of their own, sorted.
	Addresses []netip.Addr
	// OptOut are the UIDs of the pods that opted out of balancing, sorted.
	OptOut []string
	// Named are the pods that have not terminated, in no order.
	Named []NamedPod
}

// NamedPod is how a pod's processes and packets are recognised.
type NamedPod struct {
	ID
	UID string
	// Addresses are its own; none if it uses the network of its node.
	Addresses []netip.Addr
}

// ReadPods reads the pods, which must all be on one node.
func ReadPods(objs Objects) Pods {
	out := Pods{Known: objs.All[PodResource]}
	for _, p := range objs.Pods {
		if p.terminated() {
			continue // another pod may have its address by now
		}
		if p.optOut {
			out.OptOut = append(out.OptOut, p.uid)
		}
		named := NamedPod{ID: p.ID, UID: p.uid}
		if !p.hostNetwork {
			named.Addresses = p.addresses()
		}
		out.Named, out.Addresses = append(out.Named, named), append(out.Addresses, named.Addresses...)
	}
	slices.SortFunc(out.Addresses, netip.Addr.Compare)
	slices.Sort(out.OptOut)
	return out
}

// Pod holds what is read of a Pod.
type Pod struct {
	ID
	uid                 string
	optOut, hostNetwork bool
	phase               corev1.PodPhase
	ips                 []string
}

func (p *Pod) addresses() (out []netip.Addr) {
	for _, ip := range p.ips {
		if a, err := netip.ParseAddr(ip); err == nil {
			out = append(out, a)
		}
	}
	return out
}

func podFrom(in *corev1.Pod) *Pod {
	p := &Pod{ID: idOf(in), uid: string(in.UID), optOut: in.Annotations[AnnotationOptOut] == "true",
		hostNetwork: in.Spec.HostNetwork, phase: intern(in.Status.Phase)}
	for _, ip := range in.Status.PodIPs {
		p.ips = append(p.ips, ip.IP)
	}
	return p
}

func (p *Pod) insert(o *Objects) { o.Pods = append(o.Pods, p) }
