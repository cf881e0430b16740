package leader

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"strait.io/strait/internal/testutil"
)

// serveOf is a Service of one endpoint and its export; more is of the Service's spec.
func serveOf(endpoint, port, more string) string {
	return strings.NewReplacer("10.12.0.1", endpoint, "port: 80}", "port: "+port+"}", "spec: {", "spec: {"+more).Replace(serve)
}

// What takes three clusters to see: a cluster without a Service of the name imports that of two others, and is told of
// their conflict; all disagreeing clusters are named; and when one leaves, as strait uninstall has its daemons do,
// the others go on by the next oldest export's word.
func TestThreeClusters(t *testing.T) {
	w := newWorldOf(t, 3, nil)
	const (
		imported = readiness + " {.status.clusters[*].cluster} {.spec.sessionAffinity} {.spec.ports[*].port}"
		conflict = `{.status.conditions[?(@.type=="Conflict")].status} {.status.conditions[?(@.type=="Conflict")].reason} {.status.conditions[?(@.type=="Conflict")].message}`
		reasons  = "True SessionAffinityConflict,PortConflict "
		disagree = `Conflicting session affinity. Using "ClientIP" from oldest service export in "of-c1". %[1]s ` +
			`Conflicting ports[http:81/TCP]. Using those from oldest service export in "of-c1". %[1]s`
	)
	w.apply("c1", serveOf("10.11.0.1", "80", "sessionAffinity: ClientIP, ")) // made first, or in the same second: the oldest
	w.apply("c2", serveOf("10.12.0.1", "81", ""))
	w.becomes("c3", "serviceimport/serve", imported, "True Ready of-c1 of-c2 ClientIP 80")
	// Port 80 is c1's alone, and so are the endpoints behind it.
	w.slices("c3", "serve of-c1 IPv4 10.11.0.1", "serve of-c2 IPv4 10.12.0.1", "derived-serve of-c1 IPv4 10.11.0.1")
	ips := w.kubectl("c3", "-n", w.ns, "get", "serviceimport", "serve", "-o", "jsonpath={.spec.ips}")
	for _, c := range []string{"c1", "c2"} {
		w.becomes(c, "serviceexport/serve", conflict, reasons+fmt.Sprintf(disagree, "1/2 clusters disagree (of-c2)."))
	}
	w.tells("c3", "sessionAffinity", "1/2 clusters disagree (of-c2); the oldest export, from of-c1, is in force")

	w.apply("c3", serveOf("10.13.0.1", "81", ""))
	for _, c := range w.clusters {
		w.becomes(c.Name, "serviceexport/serve", conflict, reasons+fmt.Sprintf(disagree, "2/3 clusters disagree (of-c2, of-c3)."))
		w.becomes(c.Name, "serviceimport/serve", imported, "True Ready of-c1 of-c2 of-c3 ClientIP 80")
	}

	w.change("c1", tree{"barredNamespaces": []string{"*"}})
	for _, c := range []string{"c2", "c3"} {
		w.becomes(c, "serviceexport/serve", conflict, "False NoConflicts All exporting clusters agree.")
		w.becomes(c, "serviceimport/serve", imported, "True Ready of-c2 of-c3 None 81")
	}
	w.stop("c1") // and is not waited for
	w.slices("c3", "serve of-c2 IPv4 10.12.0.1", "serve of-c3 IPv4 10.13.0.1", "derived-serve of-c3 IPv4 10.13.0.1")
	w.kubectl("c3", "-n", w.ns, "delete", "serviceexport", "serve")
	for _, c := range []string{"c2", "c3"} {
		w.becomes(c, "serviceimport/serve", imported, "True Ready of-c2 None 81")
		w.slices(c, "serve of-c2 IPv4 10.12.0.1", "derived-serve of-c2 IPv4 10.12.0.1")
	}
	w.becomes("c3", "serviceimport/serve", "{.spec.ips}", ips)
	w.kubectl("c2", "-n", w.ns, "delete", "serviceexport", "serve")
	for _, c := range []string{"c2", "c3"} {
		w.until(c, "", "-n", w.ns, "get", "serviceimports", "-o", "name")
	}
}

// tells waits until the cluster's daemon tells of a problem with a field of the exports.
func (w *world) tells(cluster, field, message string) {
	w.Helper()
	want := fmt.Sprintf("ServiceExport %s/serve: %s: %s", w.ns, field, message)
	testutil.Eventually(w, within, func() error {
		out, err := exec.CommandContext(w.Context(), w.bin("strait"), "status",
			"--socket", filepath.Join(w.dir, cluster, "run", "strait.sock")).CombinedOutput()
		if strings.Contains(strings.Join(strings.Fields(string(out)), " "), want) {
			return nil
		}
		return fmt.Errorf("%s: strait status (%v) lacks %q:\n%s", cluster, err, want, out)
	})
}
