package kube

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"

	"strait.io/strait/internal/testutil"
	"strait.io/strait/test/kubelab"
	"strait.io/strait/test/pages"
)

// releases are those that the test makes, the older one first.
var releases = []string{"v0.1.0-rc.1", "v0.1.0-rc.2"}

// testRelease uses two releases as docs/release.md says, on a machine with Helm and kubectl alone:
// two clusters join, one answers the other, and the older release gives way to the newer one and
// comes back, while calls go on.
func testRelease(t *testing.T, o *ops) {
	r := o.released(t)
	o.uninstallAll(t, "--force")
	for _, c := range []string{"c1", "c2"} { // Helm takes over nothing that it did not install
		kubectl(t, c, "delete", "crd", "--ignore-not-found", "serviceexports.multicluster.x-k8s.io", "serviceimports.multicluster.x-k8s.io",
			"clusterproperties.about.k8s.io", "servicepolicies.strait.io")
	}
	blocks := r.blocks(t)
	began := time.Now()
	out := r.runs(t, blocks[0])
	if !regexp.MustCompile(`web-[a-z0-9]+-[a-z0-9]+`).MatchString(out) {
		t.Errorf("the answer of the other cluster is not there:\n%s", out)
	}
	t.Logf("from nothing to an answer in %.0f s", time.Since(began).Seconds())

	load := o.startLoads(t, "release", map[string]string{"": kubectl(t, "c1", "get", "service", "derived-web", "-o", "jsonpath={.spec.clusterIP}")})
	since := time.Now()
	r.runs(t, blocks[1])
	load.mustBeWhole(t, since)
	if got := kubectl(t, "c1", "-n", "strait-system", "get", "daemonset", "strait", "-o", "jsonpath={.metadata.labels.app\\.kubernetes\\.io/version}"); got != releases[0] {
		t.Errorf("after the rollback, %s is installed, want %s", got, releases[0])
	}
	r.runs(t, "helm --kube-context c1 uninstall strait -n strait-system --wait=false\nhelm --kube-context c2 uninstall strait -n strait-system --wait=false")
	for _, c := range []string{"c1", "c2"} {
		testutil.Eventually(t, time.Minute, func() error {
			if out, err := o.Kubectl(t.Context(), c, nil, "-n", "strait-system", "get", "pods", "-o", "name"); err != nil || out != "" {
				return fmt.Errorf("helm uninstall left pods: %s %v", out, err)
			}
			return nil
		})
	}
}

// released are the releases in a registry that the nodes reach, and a machine that has Helm and
// kubectl.
type released struct {
	o        *ops
	registry string // where the nodes and Helm find it
	machine  string // its folder
}

func (o *ops) released(t *testing.T) released {
	t.Helper()
	r := released{o: o, machine: t.TempDir()}
	images := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	serve := func(l net.Listener, err error) string {
		must(t, err)
		server := &http.Server{Handler: images}
		go func() { _ = server.Serve(l) }()
		t.Cleanup(func() { server.Close() })
		return l.Addr().String() + "/team"
	}
	r.registry = serve(o.Listen("c1"))
	must(t, o.AllowHTTP(t.Context(), strings.TrimSuffix(r.registry, "/team")))
	source := filepath.Join(t.TempDir(), "source")
	must(t, os.Mkdir(source, 0o755))
	command(t, root, "git ls-files -z --cached --others --exclude-standard | xargs -0 ls -d 2>/dev/null | tar -c -T - | tar -x -C "+source)
	commit := "git -c user.name=t -c user.email=t@t.invalid commit -q --allow-empty -m "
	command(t, source, "git init -q . && git add -A && "+commit+"all")
	for i, version := range releases {
		command(t, source, fmt.Sprintf("%s'cli: change %d' && make release VERSION=%s REGISTRY=%s RELEASE_PLATFORMS=linux/%s && go run -buildvcs=false ./install/image/push -registry %s dist/oci",
			commit, i, version, r.registry, runtime.GOARCH, serve(net.Listen("tcp", "127.0.0.1:0"))))
	}
	helm := strings.TrimSpace(command(t, root, "test/setup/tool.sh helm 2>/dev/null"))
	must(t, kubelab.MakeBare(r.machine, map[string]string{"helm.real": helm, "kubectl": filepath.Join(o.Programs, "kubectl")}))
	must(t, os.Mkdir(filepath.Join(r.machine, "root/.kube"), 0o755))
	must(t, o.WriteBareKubeconfig(filepath.Join(r.machine, "root/.kube/config")))
	// The lab's registry has no certificate, and its nodes need settings.
	wrapper := "#!/bin/sh\ncase \" $* \" in\n*' install '*) exec helm.real \"$@\" --plain-http"
	for i := 1; i < len(kubelab.Settings); i += 2 {
		wrapper += " --set " + kubelab.Settings[i]
	}
	wrapper += " ;;\n*' upgrade '*) exec helm.real \"$@\" --plain-http ;;\nesac\nexec helm.real \"$@\"\n"
	must(t, os.WriteFile(filepath.Join(r.machine, "bin/helm"), []byte(wrapper), 0o755))
	return r
}

// blocks are the commands of the page, about these releases and with images that the lab has.
func (r released) blocks(t *testing.T) (out []string) {
	t.Helper()
	all, err := pages.Load(os.DirFS(root))
	must(t, err)
	of := pages.Of(all, pages.Bare)
	if len(of) != 2 {
		t.Fatalf("%d blocks have the suite %s, want 2", len(of), pages.Bare)
	}
	replace := strings.NewReplacer("registry.example/team", r.registry, "--version 0.1.0", "--version "+releases[0][1:], "--version 0.2.0", "--version "+releases[1][1:],
		"registry.k8s.io/e2e-test-images/agnhost:2.53", "localhost/agnhost:1", "curlimages/curl", "localhost/shell:1")
	for _, b := range of {
		out = append(out, replace.Replace(b.Script()))
	}
	return out
}

// runs runs commands on the machine.
func (r released) runs(t *testing.T, script string) string {
	t.Helper()
	began := time.Now()
	out, err := r.o.Bare(t.Context(), r.machine, script)
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, script, out)
	}
	t.Logf("%.0f s\n%s", time.Since(began).Seconds(), out)
	return out
}

// command runs a command of bash in a folder, and returns its output.
func command(t *testing.T, dir, text string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", text)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", text, err, out)
	}
	return string(out)
}
