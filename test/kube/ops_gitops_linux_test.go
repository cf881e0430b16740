package kube

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/install/chart"
	"strait.io/strait/internal/testutil"
	"strait.io/strait/test/kubelab"
	"strait.io/strait/test/pages"
)

// repository is a copy of the example, and what a person does with it.
type repository struct {
	*testing.T
	o    *ops
	dir  string
	path string // with kubectl, and without strait
	// blocks are those of the page that were not executed yet.
	blocks []pages.Block
}

// folders are the folders of the repository, by the context of their cluster.
var folders = map[string]string{"c1": "us-east", "c2": "eu-central"}

// testGitOps joins two fresh clusters by what is in a Git repository, as docs/gitops.md has it:
// kubectl alone applies it, and no command sees both. What strait writes meanwhile is no drift, and
// nothing reverts or prunes it. Then one cluster gets another root by two changes, while calls go
// on, and leaves by a third.
func testGitOps(t *testing.T, o *ops) {
	o.uninstallAll(t, "--force")
	defer func() {
		o.uninstallAll(t, "--force")
		if sharedOf(t).kept {
			must(t, o.InstallStrait(t.Context(), o.strait))
		}
	}()
	r := o.repository(t)

	r.lists() // no member yet
	r.does("kubectl --context c1 apply")
	for _, c := range []string{"c1", "c2"} {
		r.believes(c, "before it is joined", folders[c])
		r.does("kubectl --context " + c + " -n strait-system wait")
		r.isSynced(c)
	}
	r.lists("us-east", "eu-central")
	r.does("kubectl --context c1 apply")
	for c, other := range map[string]string{"c1": "eu-central", "c2": "us-east"} {
		r.shows(c, `(?m)^`+other+` .* joined .* yes +SHA256:`)
		r.believes(c, "the two are joined", "us-east", "eu-central")
	}
	o.shell(t, "c1", "gitops", "c1n1", "", idle)
	testutil.Eventually(t, time.Minute, func() error {
		got, err := get(t.Context(), o.Lab, "c1", "gitops", "http://derived-ops-c2.default.svc.cluster.local/hostname")
		if err == nil && !strings.HasPrefix(got, "ops-c2-") {
			err = fmt.Errorf("answered by %q", got)
		}
		return err
	})
	r.isKept("c1")
	r.isKept("c2")
	r.leavesToGit()
	r.rotates()
	r.revokes()
	r.leaves()
	for _, b := range r.blocks {
		t.Errorf("%s was not executed:\n%s", b.Place(), b.Script())
	}
}

// repository copies the example, with what is not in Git: the rendered chart, and Secrets in the
// place of those that an operator would make.
func (o *ops) repository(t *testing.T) *repository {
	t.Helper()
	all, err := pages.Load(os.DirFS(root))
	must(t, err)
	r := &repository{t, o, t.TempDir(), t.TempDir(), pages.Of(all, pages.GitOps)}
	must(t, os.Symlink(filepath.Join(o.Programs, "kubectl"), filepath.Join(r.path, "kubectl")))
	must(t, os.CopyFS(r.dir, os.DirFS(filepath.Join(root, "install/examples/gitops"))))
	key := make([]byte, 32)
	_, _ = rand.Read(key) // it never fails
	var settings []string
	for i := 1; i < len(kubelab.Settings); i += 2 {
		settings = append(settings, kubelab.Settings[i])
	}
	name, tag, _ := strings.Cut(strings.TrimPrefix(o.strait.Image, "localhost/"), ":")
	settings = append(settings, "image.repository=localhost/"+name, "image.tag="+tag)
	for _, folder := range folders {
		in := filepath.Join(r.dir, "clusters", folder)
		values, err := os.ReadFile(filepath.Join(in, "values.yaml"))
		must(t, err)
		v, err := chart.Read([][]byte{values}, settings)
		must(t, err)
		docs, err := chart.Render(chart.Options{Values: v})
		must(t, err)
		must(t, os.WriteFile(filepath.Join(in, "strait.yaml"), bytes.Join(docs, []byte("\n---\n")), 0o600))
		external, err := os.ReadFile(filepath.Join(in, "secrets.yaml"))
		must(t, err)
		must(t, os.WriteFile(filepath.Join(in, "secrets.yaml"), standIns(t, external, base64.StdEncoding.EncodeToString(key)), 0o600))
	}
	return r
}

// standIns are the Secrets that the External Secrets Operator would make of ExternalSecrets.
func standIns(t *testing.T, external []byte, value string) []byte {
	t.Helper()
	var out [][]byte
	for _, doc := range bytes.Split(external, []byte("\n---\n")) {
		var e struct {
			Metadata struct{ Name, Namespace string }
			Spec     struct{ Data []struct{ SecretKey string } }
		}
		must(t, yaml.Unmarshal(doc, &e))
		data := map[string]string{}
		for _, d := range e.Spec.Data {
			data[d.SecretKey] = value
		}
		text, err := yaml.Marshal(map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": e.Metadata.Name, "namespace": e.Metadata.Namespace}, "stringData": data})
		must(t, err)
		out = append(out, text)
	}
	return bytes.Join(out, []byte("---\n"))
}

// lists changes which members the repository lists, in the place of those that it does.
func (r *repository) lists(members ...string) {
	r.Helper()
	file := filepath.Join(r.dir, "clusterset/kustomization.yaml")
	text, err := os.ReadFile(file)
	must(r, err)
	var k map[string]any
	must(r, yaml.Unmarshal(text, &k))
	files := []string{}
	for _, m := range members {
		files = append(files, "members/"+m+".yaml")
	}
	k["configMapGenerator"].([]any)[0].(map[string]any)["files"] = files
	text, err = yaml.Marshal(k)
	must(r, err)
	must(r, os.WriteFile(file, text, 0o600))
}

// does runs the next block that begins so, in the repository, and returns what it printed.
func (r *repository) does(begins string) string {
	r.Helper()
	i := slices.IndexFunc(r.blocks, func(b pages.Block) bool { return strings.HasPrefix(b.Script(), begins) })
	if i < 0 {
		r.Fatalf("no block is left that begins with %q", begins)
	}
	b := r.blocks[i]
	r.blocks = slices.Delete(r.blocks, i, i+1)
	return r.script(b.Place(), b.Script())
}

func (r *repository) script(place, text string) string {
	r.Helper()
	began := time.Now()
	cmd := exec.CommandContext(r.Context(), "bash", "-e", "-u", "-o", "pipefail", "-c", text)
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), "PATH="+r.path+":"+os.Getenv("PATH"), "KUBECACHEDIR="+r.o.KubectlCache(), "KUBECONFIG="+r.o.Kubeconfig(), "KUBECTL_APPLYSET=true")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		r.Fatalf("%s: %v\n%s\n%s%s", place, err, text, out, stderr.String())
	}
	r.Logf("%s took %s", place, time.Since(began).Round(100*time.Millisecond))
	return string(out)
}

// nudge has the kubelets of a cluster pass on now what changed, and not only after a minute or two.
func (r *repository) nudge(cluster string) {
	r.Helper()
	kubectl(r.T, cluster, "-n", "strait-system", "annotate", "pods", "--all", "--overwrite", fmt.Sprintf("strait.io/nudged=%d", time.Now().UnixNano()))
}

// nudgeEvery is how often it has to, while several things follow each other.
const nudgeEvery = 10 * time.Second

// await waits for what depends on the volumes of pods in a cluster.
func (r *repository) await(cluster string, check func() error) {
	r.Helper()
	began, nudged := time.Now(), time.Time{}
	testutil.Eventually(r, 3*time.Minute, func() error {
		err := check()
		if err != nil && time.Since(nudged) > nudgeEvery {
			nudged = time.Now()
			r.nudge(cluster)
		}
		return err
	})
	r.Logf("%s followed after %s", cluster, time.Since(began).Round(time.Second))
}

// believes waits until a cluster believes only what is signed, and exactly these clusters.
func (r *repository) believes(cluster, when string, others ...string) {
	r.Helper()
	r.await(cluster, func() error {
		out, err := r.o.InCluster(r.Context(), cluster, kubelab.DaemonContainer, "/strait", "status", "-o", "json")
		if err != nil && out == "" {
			return err
		}
		if !strings.Contains(out, `"authority": "pinned"`) {
			return fmt.Errorf("%s: %s does not believe only what is signed:\n%s", when, cluster, out)
		}
		members, err := r.o.InCluster(r.Context(), cluster, kubelab.DaemonContainer, "/strait", "members", "--ascii")
		for _, c := range []string{"us-east", "eu-central"} {
			if err == nil && strings.Contains("\n"+members, "\n"+c+" ") != slices.Contains(others, c) {
				err = fmt.Errorf("%s: %s knows others than %v:\n%s", when, cluster, others, members)
			}
		}
		return err
	})
}

// isSynced demands that nothing in a cluster differs from what is in Git, as a tool that heals
// itself compares.
func (r *repository) isSynced(cluster string) {
	r.Helper()
	r.script("kubectl diff", "kubectl --context "+cluster+" diff --server-side -k clusters/"+folders[cluster])
}

// written are the objects of strait's namespace that Git does not have, with their versions, and
// its pods.
func (r *repository) written(cluster string) string {
	r.Helper()
	return r.o.pods(r.T, cluster) + kubectl(r.T, cluster, "-n", "strait-system", "get", "secret/strait-authority", "configmap/strait-pins", "configmap/strait-believe", "configmap/strait-this-cluster",
		"-o", `jsonpath={range .items[*]}{.kind}/{.metadata.name} {.metadata.uid} {.metadata.resourceVersion}{"\n"}{end}`)
}

// isKept demands that a tool which heals and prunes finds nothing to do, and takes nothing away
// that strait wrote.
func (r *repository) isKept(cluster string) {
	r.Helper()
	before := r.written(cluster)
	r.isSynced(cluster)
	r.script("kubectl apply", "kubectl --context "+cluster+" apply --server-side -k clusters/"+folders[cluster])
	r.isSynced(cluster)
	for range 2 { // from the second time on, it prunes what has its label
		r.script("kubectl apply --prune", "kubectl --context "+cluster+" -n strait-system apply --server-side --prune --applyset=strait-gitops -k clusters/"+folders[cluster])
	}
	if after := r.written(cluster); after != before {
		r.Errorf("%s: before it was applied again\n%s\nafter\n%s", cluster, before, after)
	}
}

// leavesToGit demands that commands which would change the members refuse, write nothing, and say
// where to change them; and that one which shows them does.
func (r *repository) leavesToGit() {
	r.Helper()
	contexts := []string{"--context", "c1", "--context", "c2"}
	before := r.written("c1") + r.written("c2")
	for _, command := range [][]string{
		{"clusterset", "connect", "--yes"}, {"clusterset", "evict", "eu-central", "--yes"}, {"clusterset", "disconnect", "eu-central"},
		{"clusterset", "rotate", "eu-central"}, {"clusterset", "rotate", "--gossip-key"},
	} {
		out, err := r.o.cliAll(r.T, append(command, contexts...)...)
		if err == nil || !strings.Contains(out, "context c1: the ConfigMap strait-members lists which clusters this one believes (eu-central.yaml, us-east.yaml)") {
			r.Errorf("strait %v: %v\n%s", command, err, out)
		}
	}
	if after := r.written("c1") + r.written("c2"); after != before {
		r.Errorf("commands that refused wrote\n%s\nbefore, and\n%s\nafter", before, after)
	}
	out, err := r.o.cliAll(r.T, append([]string{"clusterset", "status"}, contexts...)...)
	if err != nil || strings.Count(out, "joined: those in the ConfigMap strait-members: eu-central.yaml, us-east.yaml") != 2 {
		r.Errorf("strait clusterset status: %v\n%s", err, out)
	}
}

// told is the member of a folder, and the file that has it.
func (r *repository) told(folder string) (authority.Member, string) {
	r.Helper()
	file := filepath.Join(r.dir, "clusterset/members", folder+".yaml")
	text, err := os.ReadFile(file)
	must(r, err)
	m, err := authority.ParseMember(text)
	must(r, err)
	return m, file
}

// rotates gives eu-central another root by two changes, while c1 calls it.
func (r *repository) rotates() {
	r.Helper()
	load := r.o.startLoad(r.T, "gitops-rotation")
	since := time.Now()
	var next authority.PublicKey
	must(r, next.UnmarshalText([]byte(strings.TrimSpace(r.does("openssl genpkey")))))
	m, file := r.told("eu-central")
	old := m.Roots[0]
	m.Roots = append(m.Roots, next)
	must(r, os.WriteFile(file, m.Encode(), 0o600))
	r.applies()
	both := regexp.QuoteMeta(old.Fingerprint() + " " + next.Fingerprint())
	for _, c := range []string{"c1", "c2"} {
		r.shows(c, `(?m)^eu-central .*`+both)
	}
	r.does("openssl pkey -in next.pem -outform DER")
	r.await("c2", func() error {
		text, err := r.o.Kubectl(r.Context(), "c2", nil, "-n", "strait-system", "get", "configmap", "strait-this-cluster", "-o", `go-template={{index .data "member.yaml"}}`)
		if err == nil && (!strings.Contains(text, next.String()) || strings.Contains(text, old.String())) {
			err = fmt.Errorf("eu-central says of itself\n%s\nwant the root %s alone", text, next)
		}
		if err == nil {
			err = os.WriteFile(file, []byte(text), 0o600)
		}
		return err
	})
	r.applies()
	for _, c := range []string{"c1", "c2"} {
		r.shows(c, `(?m)^eu-central .* `+regexp.QuoteMeta(next.Fingerprint())+` `, `(?m)^  c2n2 .* SHA256:`)
		r.hides(c, old.Fingerprint())
	}
	r.does("kubectl --context c1 -n strait-system annotate")
	r.does("kubectl --context c1 -n strait-system exec")
	load.mustBeWhole(r.T, since)
}

// applies is what a tool does in both clusters after a change.
func (r *repository) applies() {
	r.Helper()
	for c, folder := range folders {
		r.script("apply "+folder, "kubectl --context "+c+" apply --server-side -k clusters/"+folder)
	}
}

// revokes withdraws the key of a node of eu-central, as the one step that needs no change in the
// repository: the own pin there does not undo it.
func (r *repository) revokes() {
	r.Helper()
	out, err := r.o.cli(r.T, "c2", "node", "revoke", "c2n2", "--yes")
	if err != nil {
		r.Fatalf("strait node revoke: %v\n%s", err, out)
	}
	r.hides("c1", "c2n2")
	r.applies()
	r.isSynced("c2")
	r.hides("c1", "c2n2")
}

// leaves has eu-central leave by a change that only us-east sees.
func (r *repository) leaves() {
	r.Helper()
	r.o.hasSlicesOf(r.T, "c1", "eu-central", true)
	_, file := r.told("eu-central")
	must(r, os.Remove(file))
	r.lists("us-east")
	r.does("kubectl --context c1 apply")
	r.hides("c1", "c2n1")
	r.o.hasSlicesOf(r.T, "c1", "eu-central", false)
}

// shows waits until strait members on a node of a cluster shows lines.
func (r *repository) shows(cluster string, lines ...string) {
	r.Helper()
	r.await(cluster, func() error { return r.o.showing(r.Context(), cluster, lines...) })
}

// hides waits until it no longer shows a word.
func (r *repository) hides(cluster, word string) {
	r.Helper()
	r.await(cluster, func() error {
		out, err := r.o.InCluster(r.Context(), cluster, kubelab.DaemonContainer, "/strait", "members", "--ascii")
		if err == nil && strings.Contains(out, word) {
			err = errors.New(cluster + " still shows " + word + ":\n" + out)
		}
		return err
	})
}
