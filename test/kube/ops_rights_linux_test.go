package kube

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

const account = "system:serviceaccount:strait-system:strait"

// everybody are the rights of any account, which Kubernetes gives.
var everybody = []string{
	"selfsubjectreviews.authentication.k8s.io [] [] [create]",
	"selfsubjectaccessreviews.authorization.k8s.io [] [] [create]",
	"selfsubjectrulesreviews.authorization.k8s.io [] [] [create]",
}

// rights are those of the daemon's account in every namespace, in the words of kubectl auth can-i --list.
var rights = []string{
	"events.events.k8s.io [] [] [create]",
	"endpointslices.discovery.k8s.io/restricted [] [] [create]",
	"services [] [] [get list watch create update patch delete]",
	"endpointslices.discovery.k8s.io [] [] [list watch create update patch delete]",
	"serviceimports.multicluster.x-k8s.io [] [] [list watch create patch delete]",
	"namespaces [] [] [list watch]",
	"nodes [] [] [list watch]",
	"pods [] [] [list watch]",
	"clusterproperties.about.k8s.io [] [] [list watch]",
	"serviceexports.multicluster.k8s.io [] [] [get list watch]",
	"serviceexports.multicluster.x-k8s.io [] [] [get list watch]",
	"serviceexports.net.gke.io [] [] [get list watch]",
	"servicepolicies.strait.io [] [] [list watch]",
	"multiclusterservices.networking.karmada.io [] [] [list watch]",
	"serviceexports.multicluster.x-k8s.io/status [] [] [patch]",
	"serviceimports.multicluster.x-k8s.io/status [] [] [patch]",
	"servicepolicies.strait.io/status [] [] [patch]",
}

// inOwnNamespace are those that it has besides in strait-system.
var inOwnNamespace = []string{
	"leases.coordination.k8s.io [] [] [create]",
	"leases.coordination.k8s.io [] [strait-leader] [get update]",
}

// testRights: the daemon's account can do this and nothing else.
func testRights(t *testing.T, o *ops) {
	for namespace, want := range map[string][]string{
		"default":       slices.Concat(everybody, rights),
		"kube-system":   slices.Concat(everybody, rights),
		"strait-system": slices.Concat(everybody, rights, inOwnNamespace),
	} {
		var got []string
		for _, line := range lines(kubectl(t, "c1", "auth", "can-i", "--list", "-n", namespace, "--as="+account)) {
			// Paths such as /healthz are everybody's to read.
			if !strings.HasPrefix(line, "Resources ") && !strings.HasPrefix(line, "[/") {
				got = append(got, line)
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("rights in %s:\n%s\nwant\n%s", namespace, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	for _, args := range []string{
		"get secrets -n strait-system", "get secret strait-clusterset -n strait-system", "get configmaps -n kube-system",
		"delete node c1n2", "label node c1n2 a=b", "delete pod -n kube-system --all", "create namespace strait-forbidden",
		"delete serviceexport ops-c1", "get leases -n kube-system", "delete lease strait-leader -n strait-system",
		"create serviceaccount strait-forbidden", "get clusterroles", "delete crd serviceexports.multicluster.x-k8s.io",
		"get --raw /metrics", "exec -n strait-system " + o.daemon(t, "c1", "c1n1", "daemon") + " -- /strait version",
	} {
		// Only what asks for nothing else first tells: others would fail for want of a right to read.
		out, err := o.Kubectl(t.Context(), "c1", nil, append(strings.Fields("--as="+account), strings.Fields(args)...)...)
		if err == nil || !strings.Contains(err.Error(), "orbidden") {
			t.Errorf("kubectl %s as the daemon: %q, %v; want it forbidden", args, out, err)
		}
	}
	ownWrites(t, o)
}

// ownWrites: with the daemon's account, nothing can be written that strait would not write, and what it
// would can be.
func ownWrites(t *testing.T, o *ops) {
	const (
		service = `{apiVersion: v1, kind: Service, metadata: {name: own-writes%s}, spec: {ports: [{port: 80}]%s}}`
		slice   = `{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: own-writes%s}, addressType: IPv4, endpoints: []%s}`
		ours    = `, labels: {app.kubernetes.io/managed-by: strait}`
		sliced  = `, labels: {endpointslice.kubernetes.io/managed-by: strait.io}`
	)
	write := func(verb, namespace, text string) error {
		_, err := o.Kubectl(t.Context(), "c1", []byte(text), "--as="+account, "-n", namespace, verb, "-f", "-")
		return err
	}
	for name, x := range map[string]struct{ namespace, text, why string }{
		"a Service without the label":       {"default", fmt.Sprintf(service, "", ""), "only objects with its label"},
		"a Service with a selector":         {"default", fmt.Sprintf(service, ours, ", selector: {a: b}"), "without a selector"},
		"a Service with external addresses": {"default", fmt.Sprintf(service, ours, ", externalIPs: [192.0.2.1]"), "external addresses"},
		"a NodePort":                        {"default", fmt.Sprintf(service, ours, ", type: NodePort"), "of type ClusterIP"},
		"an ExternalName":                   {"default", fmt.Sprintf(service, ours, ", type: ExternalName, externalName: example.com"), "of type ClusterIP"},
		"a Service of the system":           {"kube-system", fmt.Sprintf(service, ours, ""), "barred namespaces"},
		"a slice without the label":         {"default", fmt.Sprintf(slice, "", ""), "only objects with its label"},
		"a slice of another's":              {"default", fmt.Sprintf(slice, ", labels: {endpointslice.kubernetes.io/managed-by: other}", ""), "only objects with its label"},
	} {
		if err := write("create", x.namespace, x.text); err == nil || !strings.Contains(err.Error(), x.why) {
			t.Errorf("%s: %v, want it refused: %s", name, err, x.why)
		}
	}
	if out, err := o.Kubectl(t.Context(), "c1", nil, "--as="+account, "delete", "service", "ops-c1"); err == nil || !strings.Contains(err.Error(), "changes only objects") {
		t.Errorf("to delete a user's Service: %q, %v", out, err)
	}
	for _, text := range []string{fmt.Sprintf(service, ours, ""), fmt.Sprintf(slice, sliced, "")} {
		must(t, write("create", "default", text))
		must(t, write("delete", "default", text))
	}
}
