package kube

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// account is the daemon's, and leader that with whose token the daemon writes that leads.
const (
	account = "system:serviceaccount:strait-system:strait"
	leader  = account + "-leader"
)

// anyAccount are the rights of any account, which Kubernetes gives.
var anyAccount = []string{
	"selfsubjectreviews.authentication.k8s.io [] [create]",
	"selfsubjectaccessreviews.authorization.k8s.io [] [create]",
	"selfsubjectrulesreviews.authorization.k8s.io [] [create]",
}

// read is what both accounts read in every namespace, and write what only the leader's does, as group and
// resource.
var (
	read = []string{
		"namespaces", "nodes", "pods", "services", "endpointslices.discovery.k8s.io", "serviceimports.multicluster.x-k8s.io",
		"clusterproperties.about.k8s.io", "serviceexports.multicluster.k8s.io", "serviceexports.multicluster.x-k8s.io",
		"serviceimports.multicluster.k8s.io", "serviceexports.net.gke.io", "servicepolicies.strait.io", "multiclusterservices.networking.karmada.io",
		"multiclusteringresses.networking.gke.io", "multiclusterservices.networking.gke.io",
	}
	write = map[string]string{
		"events.events.k8s.io":                       "create",
		"tokenreviews.authentication.k8s.io":         "create", // the lab signs
		"endpointslices.discovery.k8s.io/restricted": "create",
		"namespaces":                                     "create",
		"services":                                       "get create update patch delete",
		"endpointslices.discovery.k8s.io":                "create update patch delete",
		"serviceimports.multicluster.x-k8s.io":           "create patch delete",
		"serviceexports.multicluster.k8s.io":             "get",
		"serviceexports.multicluster.x-k8s.io":           "get",
		"serviceexports.net.gke.io":                      "get",
		"serviceexports.multicluster.k8s.io/status":      "patch",
		"serviceimports.multicluster.k8s.io":             "get patch",
		"serviceimports.multicluster.k8s.io/status":      "patch",
		"serviceimports.net.gke.io":                      "list watch create patch delete",
		"serviceimports.net.gke.io/status":               "patch",
		"serviceexports.multicluster.x-k8s.io/status":    "patch",
		"serviceimports.multicluster.x-k8s.io/status":    "patch",
		"servicepolicies.strait.io/status":               "patch",
		"ingresses.networking.k8s.io":                    "get list watch create update delete",
		"multiclusteringresses.networking.gke.io/status": "patch",
		"multiclusterservices.networking.gke.io/status":  "patch",
	}
	// inOwnNamespace are rights of the leader's account besides in strait-system.
	inOwnNamespace = []string{
		"leases.coordination.k8s.io [] [create]",
		"leases.coordination.k8s.io [strait-leader] [get update]",
	}
)

// rightsOf are those of an account in every namespace, with sorted verbs.
func rightsOf(account string) (out []string) {
	verbs := map[string][]string{}
	for _, r := range read {
		verbs[r] = []string{"list", "watch"}
	}
	for r, more := range write {
		if account == leader {
			verbs[r] = append(verbs[r], strings.Fields(more)...)
		}
	}
	for r, v := range verbs {
		slices.Sort(v)
		out = append(out, fmt.Sprintf("%s [] [%s]", r, strings.Join(v, " ")))
	}
	return out
}

// listed are the rights of an account in a namespace, as kubectl auth can-i lists them.
func listed(t *testing.T, account, namespace string) (out []string) {
	t.Helper()
	for _, line := range lines(kubectl(t, "c1", "auth", "can-i", "--list", "-n", namespace, "--as="+account)) {
		// Paths such as /healthz are for any account to read.
		if strings.HasPrefix(line, "Resources ") || strings.HasPrefix(line, "[/") {
			continue
		}
		resource, rest, _ := strings.Cut(line, " [] ")
		names, verbs, _ := strings.Cut(rest, "] [")
		sorted := strings.Fields(strings.TrimSuffix(verbs, "]"))
		slices.Sort(sorted)
		out = append(out, fmt.Sprintf("%s %s] [%s]", resource, names, strings.Join(sorted, " ")))
	}
	slices.Sort(out)
	return out
}

// testRights: the accounts of the daemon and of the leader can do this and nothing else.
func testRights(t *testing.T, o *ops) {
	for _, who := range []string{account, leader} {
		for _, namespace := range []string{"default", "kube-system", "strait-system"} {
			want := slices.Concat(anyAccount, rightsOf(who))
			if who == leader && namespace == "strait-system" {
				want = append(want, inOwnNamespace...)
			}
			slices.Sort(want)
			if got := listed(t, who, namespace); !slices.Equal(got, want) {
				t.Errorf("rights of %s in %s:\n%s\nwant\n%s", who, namespace, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		}
	}
	mayNot(t, o, account, "create service clusterip strait-forbidden --tcp=80", "delete service ops-c1", "annotate service ops-c1 a=b",
		"label endpointslices --all a=b", "annotate serviceexport ops-c1 a=b", "delete serviceimport ops-c2",
		"get lease strait-leader -n strait-system", "create token strait-leader -n strait-system")
	for _, who := range []string{account, leader} {
		mayNot(t, o, who, "get secret strait-authority -n strait-system", "get secrets -n strait-system",
			"get secret strait-clusterset -n strait-system", "get configmaps -n kube-system",
			"delete node c1n2", "label node c1n2 a=b", "delete pod -n kube-system --all", "create namespace strait-forbidden",
			"delete serviceexport ops-c1", "get leases -n kube-system", "delete lease strait-leader -n strait-system",
			"create serviceaccount strait-forbidden", "get clusterroles", "delete crd serviceexports.multicluster.x-k8s.io",
			"get --raw /metrics", "exec -n strait-system "+o.daemon(t, "c1", "c1n1", "daemon")+" -- /strait version")
	}
	ownWrites(t, o)
}

// mayNot tries commands as an account, which must be forbidden.
func mayNot(t *testing.T, o *ops, who string, commands ...string) {
	t.Helper()
	for _, args := range commands {
		// Only what asks for nothing else first tells: others would fail for want of a right to read.
		out, err := o.Kubectl(t.Context(), "c1", nil, append(strings.Fields("--as="+who), strings.Fields(args)...)...)
		if err == nil || !strings.Contains(err.Error(), "orbidden") {
			t.Errorf("kubectl %s as %s: %q, %v; want it forbidden", args, who, out, err)
		}
	}
}

// ownWrites: with the leader's account, nothing can be written that strait would not write, and what it
// would can be.
func ownWrites(t *testing.T, o *ops) {
	const (
		service = `{apiVersion: v1, kind: Service, metadata: {name: own-writes%s}, spec: {ports: [{port: 80}]%s}}`
		slice   = `{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: own-writes%s}, addressType: IPv4, endpoints: []%s}`
		ours    = `, labels: {app.kubernetes.io/managed-by: strait}`
		ingress = `{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: own-writes%s}, spec: {defaultBackend: {service: {name: a, port: {number: 80}}}}}`
		owned   = `, ownerReferences: [{apiVersion: networking.gke.io/v1, kind: %s, name: a, uid: 4d6b0e4c-95f4-4f0a-8a44-3a3c3a3c3a3c}]`
		sliced  = `, labels: {endpointslice.kubernetes.io/managed-by: strait.io}`
		// A label that would let the namespace's pods do what they like.
		privileged = `, labels: {app.kubernetes.io/managed-by: strait, pod-security.kubernetes.io/enforce: privileged}`
		namespace  = `{apiVersion: v1, kind: Namespace, metadata: {name: own-writes%s}}`
	)
	write := func(verb, namespace, text string) error {
		_, err := o.Kubectl(t.Context(), "c1", []byte(text), "--as="+leader, "-n", namespace, verb, "-f", "-")
		return err
	}
	for name, x := range map[string]struct{ namespace, text, why string }{
		"a Service without the label":          {"default", fmt.Sprintf(service, "", ""), "only objects with its label"},
		"a Service with a selector":            {"default", fmt.Sprintf(service, ours, ", selector: {a: b}"), "without a selector"},
		"a Service with external addresses":    {"default", fmt.Sprintf(service, ours, ", externalIPs: [192.0.2.1]"), "external addresses"},
		"a NodePort":                           {"default", fmt.Sprintf(service, ours, ", type: NodePort"), "of the types"},
		"an ExternalName":                      {"default", fmt.Sprintf(service, ours, ", type: ExternalName, externalName: example.com"), "of the types"},
		"a Service of the system":              {"kube-system", fmt.Sprintf(service, ours, ""), "barred namespaces"},
		"a Namespace without the label":        {"default", fmt.Sprintf(namespace, ""), "only objects with its label"},
		"a Namespace of more labels":           {"default", fmt.Sprintf(namespace, privileged), "no label but its own"},
		"a slice without the label":            {"default", fmt.Sprintf(slice, "", ""), "only objects with its label"},
		"a slice of another's":                 {"default", fmt.Sprintf(slice, ", labels: {endpointslice.kubernetes.io/managed-by: other}", ""), "only objects with its label"},
		"a headless one of another owner's":    {"default", fmt.Sprintf(service, ours+fmt.Sprintf(owned, "MultiClusterIngress"), ", clusterIP: None, selector: {a: b}"), "without a selector"},
		"one with an address, of that owner's": {"default", fmt.Sprintf(service, ours+fmt.Sprintf(owned, "MultiClusterService"), ", selector: {a: b}"), "without a selector"},
		"an Ingress without the label":         {"default", fmt.Sprintf(ingress, ""), "only objects with its label"},
		"an Ingress of the system":             {"kube-system", fmt.Sprintf(ingress, ours), "barred namespaces"},
	} {
		if err := write("create", x.namespace, x.text); err == nil || !strings.Contains(err.Error(), x.why) {
			t.Errorf("%s: %v, want it refused: %s", name, err, x.why)
		}
	}
	if out, err := o.Kubectl(t.Context(), "c1", nil, "--as="+leader, "delete", "service", "ops-c1"); err == nil || !strings.Contains(err.Error(), "changes only objects") {
		t.Errorf("to delete a user's Service: %q, %v", out, err)
	}
	for _, text := range []string{
		fmt.Sprintf(service, ours, ""), fmt.Sprintf(slice, sliced, ""), fmt.Sprintf(ingress, ours),
		fmt.Sprintf(service, ours+fmt.Sprintf(owned, "MultiClusterService"), ", clusterIP: None, selector: {a: b}"),
	} {
		must(t, write("create", "default", text))
		must(t, write("delete", "default", text))
	}
}
