package leader

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/daemon/api"
	"strait.io/strait/internal/testutil"
	"strait.io/strait/test/kubelab/apiserver"
)

// keyless is a world whose cluster c1 is as the chart installs it, without any value or key. Its
// kubelet, which mounts what the leader makes, is mount.
type keyless struct {
	*world
	dir string
}

const mounted = `{.data.pins\.yaml}{.data.believe}{.data.root\.key}{.data.member\.yaml}`

// viewSecret stands for the one that strait install made, for the other tests on the same API server.
const viewSecret = "{apiVersion: v1, kind: Secret, metadata: {name: strait-view, namespace: strait-system}, " +
	"stringData: {token: a token that is as long as it must be}}"

func newKeyless(t *testing.T, size int) keyless {
	t.Helper()
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	lab := apiserver.Lab(t, clusters)
	forget := func() {
		_, err := lab.Kubectl(context.Background(), "c1", nil, "-n", "strait-system", "delete", "--ignore-not-found",
			"secret/strait-authority", "secret/strait-view", "configmap/strait-pins", "configmap/strait-believe", "configmap/strait-this-cluster")
		if err != nil {
			t.Error(err)
		}
	}
	forget() // the token that strait install made, too
	t.Cleanup(func() {
		forget()
		_, err := lab.Kubectl(context.Background(), "c1", []byte(viewSecret), "apply", "-f", "-")
		if err != nil {
			t.Error(err)
		}
	})
	w := newWorldOf(t, size, nil, func(config tree) {
		if config["cluster"] != "of-c1" {
			return
		}
		k := config["source"].(tree)["kubernetes"].(tree)
		k["leaderDir"] = file("leader")
		kubeconfig := k["kubeconfig"].(string)
		text, err := os.ReadFile(kubeconfig)
		if err == nil {
			err = os.WriteFile(kubeconfig, []byte(strings.ReplaceAll(string(text), account, strings.TrimSuffix(account, "-leader"))), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		if size == 1 {
			delete(config["gossip"].(tree), "seeds")
		}
		config["authority"] = tree{"pinsFile": file("pins.yaml"), "tokenFile": file("token"), "believeFile": file("believe"),
			"make":       tree{"secret": "strait-authority", "pins": "strait-pins", "believe": "strait-believe", "view": "strait-view"},
			"membersDir": file("members"), "publish": "strait-this-cluster"}
	})
	node := fmt.Sprintf("{apiVersion: v1, kind: Node, metadata: {name: c1-node}, spec: {podCIDR: 10.77.1.0/24, podCIDRs: [10.77.1.0/24]}, "+
		"status: {addresses: [{type: InternalIP, address: %s}]}}", w.clusters[0].Gateway)
	w.must(w.lab.Apply(t.Context(), "c1", node))
	w.undo("c1", "delete", "node", "c1-node")
	text, err := w.lab.Kubectl(t.Context(), "c1", nil, "-n", "strait-system", "create", "token", "strait-leader")
	w.must(err)
	w.must(os.WriteFile(file("lent"), []byte(text), 0o600))
	cmd := exec.Command(w.bin("straitd"), "lend", "--dir", file("leader"), "--token", file("lent"), "--root", file("root.key"))
	w.must(cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return keyless{w, dir}
}

// made is an object that the leader made, as a kubelet mounts it; empty if there is none.
func (k keyless) made(object string) string {
	k.Helper()
	text, err := k.lab.Kubectl(k.Context(), "c1", nil, "-n", "strait-system", "get", object, "-o", "jsonpath="+mounted, "--ignore-not-found")
	k.must(err)
	if strings.HasPrefix(object, "secret") && text != "" {
		plain, err := base64.StdEncoding.DecodeString(text)
		k.must(err)
		text = string(plain)
	}
	return text
}

// token waits until the leader has made the token of strait-view.
func (k keyless) token() (token string) {
	k.Helper()
	testutil.Eventually(k, within, func() error {
		text, err := k.lab.Kubectl(k.Context(), "c1", nil, "-n", "strait-system", "get", "secret", "strait-view", "-o", "jsonpath={.data.token}")
		if err != nil {
			return err
		}
		plain, err := base64.StdEncoding.DecodeString(text)
		token = string(plain)
		return err
	})
	return token
}

// mount waits until the leader has made an object, and mounts it.
func (k keyless) mount(object, file string) string {
	k.Helper()
	text := ""
	testutil.Eventually(k, within, func() error {
		if text = k.made(object); text == "" {
			return errors.New("the leader has not made " + object)
		}
		return nil
	})
	k.must(os.WriteFile(filepath.Join(k.dir, file), []byte(text), 0o600))
	return text
}

func (k keyless) status() (s api.StatusAnswer, err error) {
	cmd := exec.CommandContext(k.Context(), k.bin("strait"), "status", "-o", "json", "--socket", filepath.Join(k.world.dir, "c1", "run", "strait.sock"))
	text, _ := cmd.Output() // the exit code says whether all is well
	return s, json.Unmarshal(text, &s)
}

// says waits until the status of c1 is as wanted.
func (k keyless) says(what string, is func(api.StatusAnswer) bool) {
	k.Helper()
	testutil.Eventually(k, within, func() error {
		s, err := k.status()
		if err == nil && !is(s) {
			err = fmt.Errorf("%s: authority %q, clusters %+v, problems %v", what, s.Authority, s.Clusters, s.Problems)
		}
		return err
	})
}

func open(s api.StatusAnswer) string {
	for _, p := range s.Problems {
		if p.Code == "STR8105" {
			return p.String()
		}
	}
	return ""
}

// TestFirstKeys: a cluster that the chart alone installed gets a root and its own pin from its leader,
// and believes only what is signed. What the leader made is never made again, and it can make nothing
// else.
func TestFirstKeys(t *testing.T) {
	k := newKeyless(t, 1)
	k.says("at first", func(s api.StatusAnswer) bool { return s.Authority == api.AuthorityEverybody })
	root := k.mount("secret/strait-authority", "root.key")
	if k.made("configmap/strait-believe") != "" {
		t.Error("only pins count before there are any")
	}
	pins := k.mount("configmap/strait-pins", "pins.yaml")
	if !strings.Contains(pins, "of-c1") || !strings.Contains(pins, "10.77.0.0/16") {
		t.Errorf("the pins are\n%s", pins)
	}
	if word := k.mount("configmap/strait-believe", "believe"); word != "pinned" {
		t.Errorf("the word is %q", word)
	}
	k.says("at last", func(s api.StatusAnswer) bool {
		refused := func(p clustermesh.Problem) bool { return p.Code == "STR2304" } // its own pin, by others
		return s.Authority == api.AuthorityPinned && s.Ready && s.Leader && open(s) == "" && !slices.ContainsFunc(s.Problems, refused) &&
			slices.ContainsFunc(s.Clusters, func(c api.Cluster) bool { return c.Name == "of-c1" && c.Alive == 1 })
	})
	k.tells(pins)
	token := k.token()
	// As GitOps does again and again.
	for range 2 {
		k.run(k.bin("strait"), "upgrade", "--kubeconfig", k.lab.Kubeconfig(), "--context", "c1")
	}
	if k.made("secret/strait-authority") != root || k.made("configmap/strait-pins") != pins || k.made("configmap/strait-believe") != "pinned" {
		t.Error("an upgrade changed the keys")
	}
	if now := k.token(); now != token || len(now) < 32 {
		t.Errorf("the token of strait-view is %q, and was %q", now, token)
	}
	as := []string{"-n", "strait-system", "--as", account}
	for _, c := range []struct {
		words string
		args  []string
	}{
		{"strait makes no Secret but", []string{"create", "secret", "generic", "other"}},
		{"strait makes no ConfigMap but", []string{"create", "configmap", "other"}},
		{"is forbidden", []string{"get", "secret", "strait-authority"}},
		{"is forbidden", []string{"get", "secret", "strait-view"}},
		{"is forbidden", []string{"patch", "configmap", "strait-pins", "-p", `{"data": {"pins.yaml": ""}}`}},
		{"is forbidden", []string{"patch", "configmap", "strait", "-p", `{"data": {"strait.yaml": ""}}`}},
		{"is forbidden", []string{"delete", "configmap", "strait-believe"}},
		{"is forbidden", []string{"delete", "configmap", "strait-this-cluster"}},
		{"already exists", []string{"create", "secret", "generic", "strait-authority"}},
	} {
		k.refused("c1", "", c.words, append(slices.Clone(as), c.args...)...)
	}
	k.kubectl("c1", "-n", "strait-system", "delete", "secret", "strait-authority")
	k.refused("c1", `{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token, metadata: {name: strait-authority, namespace: strait-system,
		annotations: {kubernetes.io/service-account.name: strait-leader}}}`, "strait makes no Secret but", append(slices.Clone(as), "create", "-f", "-")...)
	// Who deletes the word takes nothing back.
	k.must(os.Remove(filepath.Join(k.dir, "believe")))
	time.Sleep(3 * time.Second)
	k.says("without the word", func(s api.StatusAnswer) bool { return s.Authority == api.AuthorityPinned })
}

// tells demands that the leader publishes what others need to pin and find the cluster, without any
// secret, and again when it changes; and that such a document, as a file of another cluster, has
// this one believe that.
func (k keyless) tells(pins string) {
	k.Helper()
	read := func() (authority.Member, string) {
		text := ""
		testutil.Eventually(k, within, func() error {
			if text = k.made("configmap/strait-this-cluster"); text == "" {
				return errors.New("the leader publishes nothing of its cluster")
			}
			return nil
		})
		m, err := authority.ParseMember([]byte(text))
		k.must(err)
		return m, text
	}
	own, err := authority.ParsePins([]byte(pins))
	k.must(err)
	m, text := read()
	if got := m.Roots; m.Cluster != "of-c1" || !slices.Equal(got, own["of-c1"].Roots) || len(m.Seeds) != 1 || len(m.Nodes) != 1 || !strings.Contains(fmt.Sprint(m.Pods), "10.77.0.0/16") {
		k.Errorf("it publishes\n%s", text)
	}
	k.kubectl("c1", "label", "node", "c1-node", "topology.kubernetes.io/zone=z1")
	testutil.Eventually(k, within, func() error {
		if m, text := read(); !slices.Contains(m.Zones, "z1") {
			return errors.New("the node's new zone is not published:\n" + text)
		}
		return nil
	})
	other := authority.Member{Pin: authority.Pin{Cluster: "of-c9", Roots: []authority.PublicKey{authority.PrivateKey{9}.Public()}}, Seeds: []string{"192.0.2.9:7946"}}
	k.must(os.Mkdir(filepath.Join(k.dir, "members"), 0o755))
	k.must(os.WriteFile(filepath.Join(k.dir, "members", "c9.yaml"), other.Encode(), 0o600))
	pinned := func(want bool) {
		k.Helper()
		testutil.Eventually(k, within, func() error {
			text, err := exec.CommandContext(k.Context(), k.bin("strait"), "members", "--socket", filepath.Join(k.world.dir, "c1", "run", "strait.sock")).Output()
			if out := string(text); err == nil && (strings.Contains(out, "of-c9") != want || !strings.Contains(out, "of-c1")) {
				err = fmt.Errorf("of-c9 is pinned, want %v:\n%s", want, out)
			}
			return err
		})
	}
	pinned(true)
	// A folder that is empty by mistake changes nothing; to leave is a decision.
	k.must(os.Remove(filepath.Join(k.dir, "members", "c9.yaml")))
	k.says("without members", func(s api.StatusAnswer) bool {
		return slices.ContainsFunc(s.Problems, func(p clustermesh.Problem) bool {
			return p.Code == "STR2310" && strings.Contains(p.String(), "all at once")
		})
	})
	pinned(true)
	_, text = read()
	k.must(os.WriteFile(filepath.Join(k.dir, "members", "own.yaml"), []byte(text), 0o600))
	pinned(false)
}

// TestFirstKeysBesideOthers: a cluster that is joined to another without pins gets keys too, goes on to
// believe the other, and says how to go on.
func TestFirstKeysBesideOthers(t *testing.T) {
	k := newKeyless(t, 2)
	joined := func(s api.StatusAnswer) bool {
		return slices.ContainsFunc(s.Clusters, func(c api.Cluster) bool { return c.Name == "of-c2" && c.State == api.Joined })
	}
	k.says("before", joined)
	k.mount("secret/strait-authority", "root.key")
	k.mount("configmap/strait-pins", "pins.yaml")
	k.says("with keys", func(s api.StatusAnswer) bool {
		return joined(s) && s.Leader && s.Authority == api.AuthorityEverybody && strings.Contains(open(s), "strait clusterset connect")
	})
	for range 15 { // three looks of the leader
		time.Sleep(time.Second)
		if s, err := k.status(); err != nil || !joined(s) || k.made("configmap/strait-believe") != "" {
			t.Fatalf("the other cluster was cut off: %v, %+v", err, s.Clusters)
		}
	}
}
