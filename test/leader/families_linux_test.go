package leader

import (
	"net/netip"
	"strings"
	"testing"
)

// both is a Service of two families without selector, so that its endpoints name no node and are the leader's to say.
const both = `
apiVersion: v1
kind: Service
metadata: {name: both}
spec: {ipFamilyPolicy: RequireDualStack, ipFamilies: [IPv6, IPv4], ports: [{name: http, port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: both-4, labels: {kubernetes.io/service-name: both}}
addressType: IPv4
ports: [{name: http, port: 8080}]
endpoints: [{addresses: [10.12.0.1], conditions: {ready: true}}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: both-6, labels: {kubernetes.io/service-name: both}}
addressType: IPv6
ports: [{name: http, port: 8080}]
endpoints: [{addresses: ["fd02::1"], conditions: {ready: true}}]
---
apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceExport
metadata: {name: both}
`

const six = `
apiVersion: v1
kind: Service
metadata: {name: six}
spec: {ipFamilyPolicy: SingleStack, ipFamilies: [IPv6], ports: [{name: http, port: 80}]}
---
apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceExport
metadata: {name: six}
`

const readiness = `{.status.conditions[?(@.type=="Ready")].status} {.status.conditions[?(@.type=="Ready")].reason}`

// A dual-stack export has an address and slices of both families where the cluster has both, and what there is elsewhere.
func TestDualStack(t *testing.T) {
	w := newWorld(t, nil)
	w.apply("c2", both)
	w.becomes("c2", "serviceimport/both", readiness+" {.spec.ipFamilies}", `True Ready ["IPv4","IPv6"]`)
	w.becomes("c2", "service/derived-both", "{.spec.ipFamilies} {.spec.clusterIPs}",
		`["IPv4","IPv6"] `+w.kubectl("c2", "-n", w.ns, "get", "serviceimport", "both", "-o", "jsonpath={.spec.ips}"))
	ips := strings.Fields(w.kubectl("c2", "-n", w.ns, "get", "serviceimport", "both", "-o", "jsonpath={.spec.ips[*]}"))
	for i, in := range []netip.Prefix{w.lab.Topology.Clusters[1].Services, w.lab.Topology.Clusters[1].Services6} {
		if len(ips) != 2 || !in.Contains(netip.MustParseAddr(ips[i])) {
			t.Fatalf("ips %q, want the %d. in %s", ips, i+1, in)
		}
	}
	w.slices("c2", "both of-c2 IPv4 10.12.0.1", "both of-c2 IPv6 fd02::1", "derived-both of-c2 IPv4 10.12.0.1", "derived-both of-c2 IPv6 fd02::1")

	w.becomes("c1", "serviceimport/both", readiness+" {.spec.ipFamilies}", `True Ready ["IPv4"]`)
	w.slices("c1", "both of-c2 IPv4 10.12.0.1", "both of-c2 IPv6 fd02::1", "derived-both of-c2 IPv4 10.12.0.1")

	w.apply("c2", six)
	w.becomes("c2", "serviceimport/six", readiness+" {.spec.ipFamilies}", `True Ready ["IPv6"]`)
	w.becomes("c1", "serviceimport/six", readiness+" {.spec.ipFamilies} {.spec.ips}", `False IPFamilyNotSupported ["IPv6"]`)

	// An IPv4 export of the same name: IPv6 reaches a part of the endpoints only.
	w.apply("c1", strings.NewReplacer("RequireDualStack", "SingleStack", "[IPv6, IPv4]", "[IPv4]", "10.12.0.1", "10.11.0.1").Replace(strings.Split(both, "---")[0]+"---"+strings.Split(both, "---")[3]))
	for _, c := range []string{"c1", "c2"} {
		w.becomes(c, "serviceexport/both", `{.status.conditions[?(@.type=="Conflict")].status} {.status.conditions[?(@.type=="Conflict")].reason}`, "True IPFamilyConflict")
	}
	w.becomes("c2", "serviceimport/both", "{.spec.ips[*]}", strings.Join(ips, " "))
}

// Of strait's own ranges, an import has an address of each family of the exported Service, and no other, in every cluster:
// also where the API server has only one family. The one that stays is the same when a family comes or goes.
func TestFamiliesOfOwnRanges(t *testing.T) {
	w := newWorld(t, tree{"clusterSetIPs": "cidr", "importSlices": "none"},
		func(config tree) { config["clustersetCIDRs"] = []string{"241.0.0.0/8", "fd00:5354::/64"} })
	w.apply("c2", serve+"---"+both+"---"+six)
	const what = readiness + " {.spec.ipFamilies} {.spec.ips}"
	ips := func(name string) string {
		return w.kubectl("c2", "-n", w.ns, "get", "serviceimport", name, "-o", "jsonpath={.spec.ips}")
	}
	families := map[string]string{"serve": `["IPv4"]`, "both": `["IPv6","IPv4"]`, "six": `["IPv6"]`}
	for name, want := range families {
		w.becomes("c2", "serviceimport/"+name, readiness+" {.spec.ipFamilies}", "True Ready "+want)
		w.becomes("c1", "serviceimport/"+name, what, "True Ready "+want+" "+ips(name))
	}
	first := ips("six")
	if !strings.HasPrefix(first, `["fd00:5354:`) {
		t.Errorf("ips of six are %s", first)
	}
	w.kubectl("c2", "-n", w.ns, "patch", "service", "six", "-p", `{"spec": {"ipFamilyPolicy": "RequireDualStack"}}`)
	w.becomes("c2", "serviceimport/six", readiness+" {.spec.ipFamilies}", `True Ready ["IPv6","IPv4"]`)
	if got := ips("six"); !strings.HasPrefix(got, strings.TrimSuffix(first, "]")+`,"241.`) {
		t.Errorf("ips of six are %s, and were %s", got, first)
	}
	w.becomes("c1", "serviceimport/six", what, `True Ready ["IPv6","IPv4"] `+ips("six"))
	w.kubectl("c2", "-n", w.ns, "patch", "service", "six", "-p", `{"spec": {"ipFamilyPolicy": "SingleStack", "ipFamilies": ["IPv6"]}}`)
	for _, c := range []string{"c1", "c2"} {
		w.becomes(c, "serviceimport/six", what, `True Ready ["IPv6"] `+first)
	}
}
