package coredns

import "testing"

func TestMulticluster(t *testing.T) {
	for image, want := range map[string][2]bool{
		"registry.k8s.io/coredns/coredns:v1.12.2": {true, true},
		"registry.k8s.io/coredns/coredns:v1.12.1": {false, true},
		"rancher/mirrored-coredns-coredns:1.13.0": {true, true},
		"reg:5000/coredns:v1.9.3-eks@sha256:00":   {false, true},
		"reg:5000/coredns:v2.0.0":                 {true, true},
		"reg:5000/coredns@sha256:0123":            {false, false},
		"coredns:latest":                          {false, false},
		"coredns:v99999999999999999999999999.0.0": {false, false},
	} {
		if yes, known := Multicluster(image); yes != want[0] || known != want[1] {
			t.Errorf("%s: %v %v", image, yes, known)
		}
	}
}

func TestOld(t *testing.T) {
	for _, tc := range []struct {
		want   string
		images []string
	}{
		{"", nil},
		{"", []string{"registry.k8s.io/coredns/coredns:v1.12.2"}},
		{"1.11.3", []string{"registry.k8s.io/coredns/coredns:v1.11.3"}},
		{"1.9.3", []string{"reg:5000/coredns:v1.13.0", "reg:5000/coredns:v1.9.3-eks@sha256:00"}}, // while it is upgraded
		{"", []string{"coredns:latest"}},                                                         // not known
		{"", []string{"registry.k8s.io/coredns/k8s-dns-kube-dns:1.9.1"}},                         // not CoreDNS
	} {
		if got := (Server{Images: tc.images}).Old(); got != tc.want {
			t.Errorf("%v: %q, want %q", tc.images, got, tc.want)
		}
	}
}
