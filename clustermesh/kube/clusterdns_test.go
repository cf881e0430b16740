package kube

import (
	"net/netip"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"strait.io/strait/internal/coredns"
)

func dnsService(name, ip string, ports ...corev1.ServicePort) corev1.Service {
	return corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name}, Spec: corev1.ServiceSpec{ClusterIP: ip, Ports: ports}}
}

func dnsPod(image string, annotations map[string]string, gone bool) corev1.Pod {
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Image: image}}}}
	if gone {
		p.DeletionTimestamp = &metav1.Time{}
	}
	return p
}

func TestClusterDNS(t *testing.T) {
	udp, tcp := corev1.ServicePort{Protocol: corev1.ProtocolUDP, Port: 53}, corev1.ServicePort{Protocol: corev1.ProtocolTCP, Port: 9153}
	for _, tc := range []struct {
		name     string
		services []corev1.Service
		pods     []corev1.Pod
		want     coredns.Server
	}{
		{name: "none"},
		{
			name:     "kubeadm, whose pods strait dns setup restarted",
			services: []corev1.Service{dnsService("kube-dns", "10.96.0.10", tcp, udp)},
			pods:     []corev1.Pod{dnsPod("coredns:v1.12.2", map[string]string{coredns.Mark: "hash.7"}, false), dnsPod("coredns:v1.11.0", nil, true)},
			want:     coredns.Server{Service: "kube-system/kube-dns", Addr: netip.MustParseAddrPort("10.96.0.10:53"), Images: []string{"coredns:v1.12.2"}, Marked: true},
		},
		{
			name:     "GKE, of which kube-dns is what pods ask",
			services: []corev1.Service{dnsService("a-kube-dns-upstream", "10.96.0.11", udp), dnsService("kube-dns", "10.96.0.10", udp)},
			want:     coredns.Server{Service: "kube-system/kube-dns", Addr: netip.MustParseAddrPort("10.96.0.10:53")},
		},
		{
			name:     "RKE2, and Services for other ends",
			services: []corev1.Service{dnsService("headless", "None", udp), dnsService("metrics", "10.96.0.9", tcp), dnsService("rke2-coredns", "fd00::a", udp)},
			want:     coredns.Server{Service: "kube-system/rke2-coredns", Addr: netip.MustParseAddrPort("[fd00::a]:53")},
		},
	} {
		if got := clusterDNS(tc.services, tc.pods); !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s: %+v, want %+v", tc.name, got, tc.want)
		}
	}
}
