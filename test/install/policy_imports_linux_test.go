package install

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"strait.io/strait/internal/testutil"
	"strait.io/strait/test/kubelab/apiserver"
)

// The groups with exports and imports, and their versions in the lab.
var (
	mcsGroup = schema.GroupVersion{Group: "multicluster.x-k8s.io", Version: "v1beta1"}
	kepGroup = schema.GroupVersion{Group: "multicluster.k8s.io", Version: "v1alpha1"}
	gkeGroup = schema.GroupVersion{Group: "net.gke.io", Version: "v1"}
	groups   = []schema.GroupVersion{mcsGroup, kepGroup, gkeGroup}
)

// leader is the account with which strait writes.
const leader = "system:serviceaccount:strait-system:strait-leader"

// account writes in c1 as a user whom RBAC allows everything, so that only a policy can refuse.
type account struct{ dynamic.Interface }

func (u user) account(name string) account {
	u.Helper()
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: u.kubeconfig}, &clientcmd.ConfigOverrides{CurrentContext: "c1"}).ClientConfig()
	u.must(err)
	config.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: []string{"system:masters", "system:authenticated"}}
	client, err := dynamic.NewForConfig(config)
	u.must(err)
	return account{client}
}

func (u user) must(err error) {
	u.Helper()
	if err != nil {
		u.Fatal(err)
	}
}

// write is a write of the object called name: a patch, or its creation or deletion.
type write struct {
	verb, name, status string // status: the subresource, or ""
	// body is the object, or what a patch merges into it, as JSON.
	body string
}

// do writes an import or export. A dry run changes nothing.
func (a account) do(ctx context.Context, of schema.GroupVersionResource, namespace string, w write, dryRun ...string) error {
	objects := a.Resource(of).Namespace(namespace)
	var err error
	switch w.verb {
	case "create":
		var object unstructured.Unstructured
		if err := object.UnmarshalJSON([]byte(w.body)); err != nil {
			return err
		}
		_, err = objects.Create(ctx, &object, metav1.CreateOptions{DryRun: dryRun})
	case "delete":
		err = objects.Delete(ctx, w.name, metav1.DeleteOptions{DryRun: dryRun})
	default:
		_, err = objects.Patch(ctx, w.name, types.MergePatchType, []byte(w.body), metav1.PatchOptions{DryRun: dryRun}, strings.Fields(w.status)...)
	}
	return err
}

// object is an import or export, with more fields of its metadata and of itself.
func object(of schema.GroupVersion, kind, name, metadata, more string) string {
	return fmt.Sprintf(`{"apiVersion": %q, "kind": %q, "metadata": {"name": %q%s}%s}`, of, kind, name, metadata, more)
}

const (
	ours    = `, "labels": {"app.kubernetes.io/managed-by": "strait"}`
	address = `, "spec": {"type": "ClusterSetIP", "ports": [{"port": 80}], "ips": ["192.0.2.7"]}`
)

// withGroups installs the CRDs of the other groups in c1 until the test ends, and makes imports of
// each: theirs is a user's, and ours has strait's label.
func withGroups(u user) {
	u.Helper()
	lab, admin := apiserver.Lab(u, 2), u.account("admin")
	for _, group := range groups {
		if group != mcsGroup {
			u.Cleanup(func() {
				if _, err := lab.Kubectl(context.Background(), "c1", nil, "delete", "crd", "serviceexports."+group.Group, "serviceimports."+group.Group); err != nil {
					u.Error(err)
				}
			})
			apiserver.ForeignCRDs(u, lab, "c1", group.Group, group.Version)
		}
		imports := group.WithResource("serviceimports")
		for _, namespace := range []string{"default", "kube-system"} {
			for name, metadata := range map[string]string{"theirs": "", "ours": ours} {
				testutil.Eventually(u, 30*time.Second, func() error { // the kind may not be served yet
					return admin.do(u.Context(), imports, namespace, write{verb: "create", body: object(group, "ServiceImport", name, metadata, address)})
				})
				u.Cleanup(func() {
					err := admin.do(context.Background(), imports, namespace, write{verb: "delete", name: name})
					if err != nil && !apierrors.IsNotFound(err) {
						u.Error(err)
					}
				})
			}
		}
	}
}

// try is a write that is allowed, or refused with words.
type try struct {
	what string
	write
	words string
}

// tries sends writes as a user, by dry run, and compares the answers.
func (u user) tries(name string, of schema.GroupVersionResource, namespace string, all []try) {
	u.Helper()
	a := u.account(name)
	for _, x := range all {
		err := a.do(u.Context(), of, namespace, x.write, metav1.DryRunAll)
		if (err == nil) != (x.words == "") || err != nil && !strings.Contains(err.Error(), x.words) {
			u.Errorf("%s in %s of %s, by %s: %v; want %q", x.what, of, namespace, name, err, x.words)
		}
	}
}

const (
	labels    = "only imports with its label"
	addresses = "only the addresses"
	barred    = "barred namespaces"
	managed   = "managed by strait"
)

// patch is a patch of the object called name.
func patch(name, body string) write { return write{verb: "patch", name: name, body: body} }

const (
	otherAddress = `{"spec":{"ips":["192.0.2.8"]}}`
	noAddress    = `{"spec":{"ips":null}}`
	otherPort    = `{"spec":{"ports":[{"port":81}]}}`
)

// status is a patch of the status of the object called name.
func status(name string) write {
	return write{verb: "patch", name: name, status: "status", body: `{"status":{"clusters":[{"cluster":"c1"}]}}`}
}

// ofUsers are writes of a user's import, in a group where strait gives it an address.
var ofUsers = []try{
	{"another address", patch("theirs", otherAddress), ""},
	{"no address", patch("theirs", noAddress), ""},
	{"its Service", patch("theirs", `{"metadata":{"annotations":{"multicluster.kubernetes.io/derived-service":"derived-theirs"}}}`), ""},
	{"its status", status("theirs"), ""},
	{"a port", patch("theirs", otherPort), addresses},
	{"another field", patch("theirs", `{"spec":{"sessionAffinity":"ClientIP"}}`), addresses},
	{"an annotation", patch("theirs", `{"metadata":{"annotations":{"a":"b"}}}`), addresses},
	{"strait's label", patch("theirs", `{"metadata":{"labels":{"app.kubernetes.io/managed-by":"strait"}}}`), addresses},
	{"a finalizer", patch("theirs", `{"metadata":{"finalizers":["example.com/a"]}}`), addresses},
	{"deleted", write{verb: "delete", name: "theirs"}, labels},
}

// created is the creation of an import.
func created(of schema.GroupVersion, metadata string) write {
	return write{verb: "create", body: object(of, "ServiceImport", "new", metadata, address)}
}

// ofOwn are writes of an import of strait's.
func ofOwn(of schema.GroupVersion) []try {
	return []try{
		{"its own", patch("ours", otherPort), ""},
		{"its own status", status("ours"), ""},
		{"its own, deleted", write{verb: "delete", name: "ours"}, ""},
		{"its own without the label", patch("ours", `{"metadata":{"labels":{"app.kubernetes.io/managed-by":null}}}`), labels},
		{"a new one", created(of, ours), ""},
		{"a new one without the label", created(of, ""), labels},
	}
}

// TestPoliciesOfImports: with the leader's account, imports of every group can be written as strait
// writes them, and not otherwise. Copies in GKE's group are strait's alone, too.
func TestPoliciesOfImports(t *testing.T) {
	u := newUser(t)
	withGroups(u)
	u.uninstallAtEnd("c1")
	u.does(with(installC1, "--set", "admissionPolicy=true"), "ValidatingAdmissionPolicy")
	mcs, kep, gke := mcsGroup.WithResource("serviceimports"), kepGroup.WithResource("serviceimports"), gkeGroup.WithResource("serviceimports")
	u.inForce(leader, gke, "default", write{verb: "delete", name: "theirs"})
	u.inForce("somebody", gke, "default", write{verb: "delete", name: "ours"})

	for _, of := range []schema.GroupVersionResource{mcs, kep} {
		u.tries(leader, of, "default", ofUsers)
		u.tries(leader, of, "kube-system", []try{
			{"an address of a user's", patch("theirs", otherAddress), barred},
			{"an address that goes", patch("theirs", noAddress), ""},
		})
	}
	for _, of := range []schema.GroupVersionResource{mcs, gke} {
		u.tries(leader, of, "default", ofOwn(of.GroupVersion()))
		u.tries(leader, of, "kube-system", []try{
			{"a new one", created(of.GroupVersion(), ours), barred},
			{"its own", patch("ours", otherPort), barred},
			{"its own, deleted", write{verb: "delete", name: "ours"}, ""},
		})
	}
	u.tries(leader, gke, "default", []try{
		{"an address of GKE's", patch("theirs", otherAddress), labels},
		{"the status of GKE's", status("theirs"), labels},
		{"GKE's, deleted", write{verb: "delete", name: "theirs"}, labels},
	})
	u.tries(leader, kep, "default", []try{
		{"a port of a user's with the label", patch("ours", otherPort), addresses},
		{"an address of it", patch("ours", otherAddress), ""},
		{"a new one", created(kepGroup, ours), labels},
	})
	for of, words := range map[schema.GroupVersionResource]string{mcs: managed, kep: "", gke: managed} {
		u.tries("somebody", of, "default", []try{
			{"an import with strait's label", patch("ours", otherAddress), words},
			{"another's", patch("theirs", otherAddress), ""},
		})
	}
}

// TestPoliciesOfExports: with admissionPolicy, exports of every group are refused in barred
// namespaces, but one that is there and deleted can go.
func TestPoliciesOfExports(t *testing.T) {
	u := newUser(t)
	withGroups(u)
	somebody := u.account("somebody")
	created := func(of schema.GroupVersion, name, metadata string) write {
		return write{verb: "create", body: object(of, "ServiceExport", name, metadata, "")}
	}
	for _, group := range groups {
		exports := group.WithResource("serviceexports")
		u.must(somebody.do(t.Context(), exports, "kube-system", created(group, "going", `, "finalizers": ["example.com/a"]`)))
		u.must(somebody.do(t.Context(), exports, "kube-system", write{verb: "delete", name: "going"}))
	}
	u.uninstallAtEnd("c1")
	u.does(with(installC1, "--set", "admissionPolicy=true"), "ValidatingAdmissionPolicy")
	for _, group := range groups {
		exports := group.WithResource("serviceexports")
		u.inForce("somebody", exports, "kube-system", created(group, "new", ""))
		u.tries("somebody", exports, "kube-system", []try{{"an export", created(group, "new", ""), "barred"}})
		u.tries("somebody", exports, "default", []try{
			{"an export", created(group, "new", ""), ""},
			{"that of the API server", created(group, "kubernetes", ""), "never exported"},
		})
		u.must(somebody.do(t.Context(), exports, "kube-system", patch("going", `{"metadata":{"finalizers":null}}`)))
	}
}

// inForce waits until a write that a policy refuses is refused.
func (u user) inForce(name string, of schema.GroupVersionResource, namespace string, w write) {
	u.Helper()
	a := u.account(name)
	testutil.Eventually(u, 30*time.Second, func() error {
		if a.do(u.Context(), of, namespace, w, metav1.DryRunAll) == nil {
			return errors.New("the policy is not in force")
		}
		return nil
	})
}
