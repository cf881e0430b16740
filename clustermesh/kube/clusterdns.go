package kube

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"strait.io/strait/internal/coredns"
)

// ClusterDNS reads what the API server has of the cluster's own DNS. A cluster whose DNS is not in
// coredns.Namespace has none that can be found, which is no error.
func (c Client) ClusterDNS(ctx context.Context) (coredns.Server, error) {
	options := metav1.ListOptions{LabelSelector: coredns.Selector}
	services, err := c.builtin.Services(coredns.Namespace).List(ctx, options)
	if err != nil {
		return coredns.Server{}, fmt.Errorf("list the Services of the cluster's DNS: %w", err)
	}
	pods, err := c.builtin.Pods(coredns.Namespace).List(ctx, options)
	if err != nil {
		return coredns.Server{}, fmt.Errorf("list the pods of the cluster's DNS: %w", err)
	}
	return clusterDNS(services.Items, pods.Items), nil
}

// clusterDNS chooses the Service: kube-dns if there is one of that name, as the distributions call it.
func clusterDNS(services []corev1.Service, pods []corev1.Pod) (out coredns.Server) {
	slices.SortFunc(services, func(a, b corev1.Service) int {
		return cmp.Or(rankDNS(a)-rankDNS(b), cmp.Compare(a.Name, b.Name))
	})
	for _, s := range services {
		ip, err := netip.ParseAddr(s.Spec.ClusterIP)
		if err != nil { // headless
			continue
		}
		i := slices.IndexFunc(s.Spec.Ports, func(p corev1.ServicePort) bool { return p.Protocol == corev1.ProtocolUDP })
		if i >= 0 {
			out.Service, out.Addr = s.Namespace+"/"+s.Name, netip.AddrPortFrom(ip, uint16(s.Spec.Ports[i].Port))
			break
		}
	}
	for _, p := range pods {
		if len(p.Spec.Containers) > 0 && p.DeletionTimestamp == nil {
			out.Images = append(out.Images, p.Spec.Containers[0].Image)
			out.Marked = out.Marked || p.Annotations[coredns.Mark] != ""
		}
	}
	return out
}

func rankDNS(s corev1.Service) int {
	if s.Name == "kube-dns" {
		return 0
	}
	return 1
}
