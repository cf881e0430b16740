package kube

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"strait.io/strait/install/image/oci"
	"strait.io/strait/internal/testutil"
	"strait.io/strait/test/kubelab/apiserver"
)

// asked is how often strait looks for kinds that were installed since, with some time to act.
const asked = 45 * time.Second

// apply applies a file of testdata in the test's namespace.
func (m *member) apply(file string) {
	m.t.Helper()
	_, err := m.lab.Kubectl(m.t.Context(), m.name, nil, "-n", m.ns, "apply", "-f", filepath.Join("testdata", file))
	must(m.t, err)
}

// serveImage makes an image under the very name that Karmada's example asks for.
func serveImage(t *testing.T) string {
	t.Helper()
	root, file := t.TempDir(), filepath.Join(t.TempDir(), "serve.tar")
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-trimpath", "-ldflags", "-s -w", "-o", filepath.Join(root, "serve"), "./serve")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build serve: %v\n%s", err, out)
	}
	_, err := oci.Write(file, oci.Image{Names: []string{"docker.io/jeremyot/serve:0a40de8"}, Root: root, Entrypoint: []string{"/serve"}, Arch: runtime.GOARCH})
	must(t, err)
	return file
}

// TestScenarioI is Karmada's example: its user makes the import by hand where the service is used.
func TestScenarioI(t *testing.T) {
	t.Parallel()
	c1, c2 := clusterset(t)
	must(t, c1.lab.Import(t.Context(), serveImage(t)))
	c2.apply("karmada-import.yaml")
	c1.apply("karmada.yaml")
	var ip string
	testutil.Eventually(t, within, func() error {
		s, err := c2.core.CoreV1().Services(c2.ns).Get(t.Context(), "derived-serve", metav1.GetOptions{})
		if err != nil {
			return err
		}
		ip = s.Spec.ClusterIP
		return equal("ports", fmt.Sprintf("%d/%s", s.Spec.Ports[0].Port, s.Spec.Ports[0].Protocol), "80/TCP")
	})
	i := c2.imported("serve", from("c1"))
	must(t, equal("ips", i.Spec.IPs, []string{ip}))
	testutil.Eventually(t, 2*within, func() error {
		out, err := c2.run(1, "curl -sS --fail --max-time 2 http://%s/", ip)
		if got := strings.Join(out, " "); err == nil && !strings.HasPrefix(got, "'hello from cluster member1 (Node: c1n") {
			err = fmt.Errorf("the derived Service answers %q", got)
		}
		return err
	})
	// The import is the user's: it outlives the export.
	c1.unexport("serve")
	testutil.Eventually(t, within, func() error {
		i, err := c2.mcs.MulticlusterV1beta1().ServiceImports(c2.ns).Get(t.Context(), "serve", metav1.GetOptions{})
		if err != nil {
			return err
		}
		return condition(i.Status.Conditions, "Ready", "False", "Pending")
	})
	remains(t, func() error {
		i, err := c2.mcs.MulticlusterV1beta1().ServiceImports(c2.ns).Get(t.Context(), "serve", metav1.GetOptions{})
		if err != nil {
			return err
		}
		return equal("type", i.Spec.Type, mcsv1beta1.ClusterSetIP)
	})
	must(t, c2.mcs.MulticlusterV1beta1().ServiceImports(c2.ns).Delete(t.Context(), "serve", metav1.DeleteOptions{}))
	testutil.Eventually(t, within, func() error {
		_, err := c2.core.CoreV1().Services(c2.ns).Get(t.Context(), "derived-serve", metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("the derived Service outlives its import: %v", err)
		}
		return nil
	})
}

// The KEP's example, with the group of its text: an alias of ServiceExport, once its kind is
// installed. An import that a user makes in that group names the address at which the exporter's
// pods answer, for as long as there is one.
func TestKEPsExample(t *testing.T) {
	t.Parallel()
	c1, c2 := apart(t)
	for _, m := range []*member{c1, c2} {
		m.ns = "my-ns"
		m.makeNamespace()
		apiserver.ForeignCRDs(t, m.lab, m.name, oldGroup, "v1alpha1") // they stay, as in install
		m.established("serviceexports." + oldGroup)
		m.established("serviceimports." + oldGroup)
	}
	http := ports(corev1.ServicePort{Name: "http", Port: 80})
	c1.serve(service(named("my-svc"), http, withTargets))
	c1.pods(1)
	c1.apply("kep.yaml")
	c2.apply("kep-import.yaml")
	c2.importedBy("my-svc")
	ips := c2.imported("my-svc").Spec.IPs
	addressed := func(i *mcsv1beta1.ServiceImport) error { return equal("ips", i.Spec.IPs, ips) }
	c2.oldImport("my-svc", addressed, from("c1"))
	c1.oldExport("my-svc", "Conflict=False NoConflicts", "Ready=True Exported", "Valid=True Valid")
	for n := range c2.nodes() {
		c2.answers(n+1, ips[0]+":80", "c1")
	}

	// The KEP's conflict: another cluster exports it as headless.
	c2.serve(service(named("my-svc"), http, headless))
	c2.export("my-svc")
	c2.oldImport("my-svc", addressed, from("c1", "c2"))
	said := c1.oldExport("my-svc", "Conflict=True TypeConflict", "Ready=True Exported", "Valid=True Valid")
	if want := `Conflicting type. Using "ClusterSetIP" from oldest service export in "c1". 1/2 clusters disagree`; !strings.HasPrefix(said, want) {
		t.Errorf("the conflict is %q, want %q", said, want)
	}
	c2.unexport("my-svc")
	c1.oldExport("my-svc", "Conflict=False NoConflicts", "Ready=True Exported", "Valid=True Valid")

	must(t, c1.core.CoreV1().Services(c1.ns).Delete(t.Context(), "my-svc", metav1.DeleteOptions{}))
	c1.oldExport("my-svc", "Ready=False Failed", "Valid=False NoService")
	c2.gone("my-svc")
	c2.oldImport("my-svc", from(), func(i *mcsv1beta1.ServiceImport) error {
		return cmp.Or(equal("ips", i.Spec.IPs, []string(nil)), equal("the user's ports", portsOf(i.Spec), "http TCP 80 "))
	})
}

// oldGroup is the group in the text of KEP-1645. Its kinds have the fields of the MCS API's.
const oldGroup = "multicluster.k8s.io"

// oldImport waits until an import of that group passes the checks.
func (m *member) oldImport(name string, checks ...func(*mcsv1beta1.ServiceImport) error) {
	m.t.Helper()
	testutil.Eventually(m.t, within, func() error {
		var i mcsv1beta1.ServiceImport
		err := m.readOld("serviceimports", name, &i)
		for _, check := range checks {
			if err == nil {
				err = check(&i)
			}
		}
		return m.wrap(err)
	})
}

// oldExport waits until an export of that group has just these conditions, and returns the message
// of the first: of Conflict, if it is there.
func (m *member) oldExport(name string, want ...string) (message string) {
	m.t.Helper()
	testutil.Eventually(m.t, within, func() error {
		var e mcsv1beta1.ServiceExport
		err := m.readOld("serviceexports", name, &e)
		// Those of the MCS API, without strait's own.
		e.Status.Conditions = slices.DeleteFunc(e.Status.Conditions, func(c metav1.Condition) bool { return strings.HasPrefix(c.Type, "strait.io/") })
		slices.SortFunc(e.Status.Conditions, func(a, b metav1.Condition) int { return cmp.Compare(a.Type, b.Type) })
		var have []string
		for i, c := range e.Status.Conditions {
			have = append(have, fmt.Sprintf("%s=%s %s", c.Type, c.Status, c.Reason))
			if i == 0 {
				message = c.Message
			}
			if c.ObservedGeneration != e.Generation || c.LastTransitionTime.IsZero() {
				err = cmp.Or(err, fmt.Errorf("condition %+v of generation %d", c, e.Generation))
			}
		}
		return m.wrap(cmp.Or(err, equal("conditions", have, want)))
	})
	return message
}

func (m *member) readOld(plural, name string, into any) error {
	out, err := m.lab.Kubectl(m.t.Context(), m.name, nil, "-n", m.ns, "get", plural+"."+oldGroup, name, "-o", "json")
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(out), into)
}

// TestScenarioE is GKE's multi-cluster Services: its ServiceExport is an alias, and the import
// names its derived Service. Where both kinds are there, strait's own counts.
func TestScenarioE(t *testing.T) {
	t.Parallel()
	c1, c2 := clusterset(t)
	c1.serve(service())
	c1.install(t, "net.gke.io", "v1")
	gke := "apiVersion: net.gke.io/v1\nkind: ServiceExport\nmetadata: {name: hello}\n"
	_, err := c1.lab.Kubectl(t.Context(), "c1", []byte(gke), "-n", c1.ns, "apply", "-f", "-")
	must(t, err)
	c2.importedBy("hello")
	c2.imported("hello", func(i *mcsv1beta1.ServiceImport) error {
		return equal("annotation", i.Annotations["multicluster.kubernetes.io/derived-service"], "derived-hello")
	})
	c1.export("hello", exporting("a", "1"))
	c2.imported("hello", func(i *mcsv1beta1.ServiceImport) error {
		return equal("label of our own kind", i.Labels["example.com/a"], "1")
	})
	c1.unexport("hello")
	c2.imported("hello", func(i *mcsv1beta1.ServiceImport) error {
		return equal("label of our own kind", i.Labels["example.com/a"], "")
	})
	_, err = c1.lab.Kubectl(t.Context(), "c1", nil, "-n", c1.ns, "delete", "serviceexports.net.gke.io", "hello")
	must(t, err)
	c2.gone("hello")
}

// install installs an alias' kind. It stays: another test's objects would go with it.
func (m *member) install(t *testing.T, group, version string) {
	t.Helper()
	text, err := os.ReadFile("testdata/alias.yaml")
	must(t, err)
	must(t, m.lab.Apply(t.Context(), m.name, fmt.Sprintf(string(text), group, version)))
	m.established("serviceexports." + group)
}

// established waits until the API server serves a custom kind. A CRD that is new has no conditions
// yet, for which kubectl wait does not wait.
func (m *member) established(crd string) {
	m.t.Helper()
	testutil.Eventually(m.t, within, func() error {
		_, err := m.lab.Kubectl(m.t.Context(), m.name, nil, "wait", "--for=condition=Established", "--timeout=20s", "crd/"+crd)
		return err
	})
}

// importedBy waits for an import by an export of a kind that strait has still to find.
func (m *member) importedBy(name string) {
	m.t.Helper()
	testutil.Eventually(m.t, asked, func() error {
		_, err := m.mcs.MulticlusterV1beta1().ServiceImports(m.ns).Get(m.t.Context(), name, metav1.GetOptions{})
		return err
	})
	m.imported(name, from("c1"))
}
