package kubeproxy

import (
	"net/netip"
	"strings"
	"testing"

	"strait.io/strait/datapath"
	"strait.io/strait/internal/l4"
)

func frontend() datapath.Frontend {
	f := datapath.Frontend{Addr: l4.New(netip.MustParseAddr("10.96.0.1"), 80, l4.TCP)}
	for _, ip := range []string{"10.128.0.1", "10.128.0.2"} {
		f.Backends = append(f.Backends, datapath.Backend{IP: netip.MustParseAddr(ip), Port: 8080, Weight: 1})
	}
	return f
}

func written(t *testing.T, shape Shape) string {
	t.Helper()
	var b strings.Builder
	if err := Write(&b, shape, "10.0.0.0/8", []datapath.Frontend{frontend()}); err != nil {
		t.Fatal(err)
	}
	text, ok := strings.CutPrefix(b.String(), top)
	if !ok {
		t.Fatal("the base chains are missing")
	}
	return text
}

// The expected text is in the words of kube-proxy's own tests (proxier_test.go).
func TestMaps(t *testing.T) {
	want := `add chain ip kube-proxy service-2PZJWSZD-bench/service-0/tcp/p80
add rule ip kube-proxy service-2PZJWSZD-bench/service-0/tcp/p80 ip daddr 10.96.0.1 tcp dport 80 ip saddr != 10.0.0.0/8 jump mark-for-masquerade
add rule ip kube-proxy service-2PZJWSZD-bench/service-0/tcp/p80 meta l4proto tcp dnat ip addr . port to numgen random mod 2 map { 0 : 10.128.0.1 . 8080 , 1 : 10.128.0.2 . 8080 }
add element ip kube-proxy cluster-ips { 10.96.0.1 }
add element ip kube-proxy service-ips { 10.96.0.1 . tcp . 80 : goto service-2PZJWSZD-bench/service-0/tcp/p80 }
`
	if got := written(t, Maps); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestChains(t *testing.T) {
	got := written(t, Chains)
	for _, want := range []string{
		"numgen random mod 2 vmap { 0 : goto endpoint-",
		"__10.128.0.1/8080 ip saddr 10.128.0.1 jump mark-for-masquerade\n",
		"__10.128.0.2/8080 meta l4proto tcp dnat to 10.128.0.2:8080\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in:\n%s", want, got)
		}
	}
	if n := strings.Count(got, "add chain "); n != 3 {
		t.Errorf("%d chains, want one of the service and two of its endpoints", n)
	}
	// nft wants a chain to be there before a rule goes to it.
	if strings.Index(got, "vmap {") < strings.LastIndex(got, "add chain ip kube-proxy endpoint-") {
		t.Error("a rule goes to a chain that is added after it")
	}
}
