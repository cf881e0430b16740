package chart_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/mcs-api/config/crd"
	"sigs.k8s.io/yaml"

	"strait.io/strait/install/chart"
)

var update = flag.Bool("update", false, "rewrite install/manifests")

// TestManifest: the manifest that people apply without Helm is what the chart makes of its defaults.
func TestManifest(t *testing.T) {
	const file = "../manifests/strait.yaml"
	docs, err := chart.Render(chart.Options{Values: chart.Values{"createNamespace": true}})
	if err != nil {
		t.Fatal(err)
	}
	got := []byte("# Rendered from install/chart/strait by go test ./install/chart -update; do not edit.\n")
	for _, d := range docs {
		got = append(append(got, "---\n"...), d...)
	}
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what the chart renders; go test ./install/chart -update rewrites it", file)
	}
}

// render is the chart with values, by "Kind/name".
func render(t *testing.T, values string) map[string]map[string]any {
	t.Helper()
	v, err := chart.Read([][]byte{[]byte(values)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	docs, err := chart.Render(chart.Options{Values: v})
	if err != nil {
		t.Fatalf("%s: %v", values, err)
	}
	return objects(t, docs)
}

// objects are documents by "Kind/name".
func objects(t testing.TB, docs [][]byte) map[string]map[string]any {
	t.Helper()
	out := map[string]map[string]any{}
	for _, d := range docs {
		var o map[string]any
		if err := yaml.UnmarshalStrict(d, &o); err != nil {
			t.Fatalf("%v in\n%s", err, d)
		}
		if len(o) == 0 {
			continue
		}
		id := fmt.Sprint(o["kind"], "/", o["metadata"].(map[string]any)["name"])
		if out[id] != nil {
			t.Errorf("%s is there twice", id)
		}
		out[id] = o
	}
	return out
}

// dig follows a path of keys.
func dig(o any, path ...string) any {
	for _, k := range path {
		m, _ := o.(map[string]any)
		o = m[k]
	}
	return o
}

func TestValues(t *testing.T) {
	config := func(all map[string]map[string]any) map[string]any { return configOf(t, all) }
	plain := render(t, "{}")
	for _, absent := range []string{"Namespace/strait-system", "DaemonSet/strait-tunnel", "ValidatingAdmissionPolicy/strait-managed-objects"} {
		if plain[absent] != nil {
			t.Errorf("%s is there by default", absent)
		}
	}
	if got := dig(config(plain), "mesh", "implementation"); got != "kernel" {
		t.Errorf("implementation %v", got)
	}
	userspace := render(t, "mesh: {implementation: userspace, device: wg7, mtu: 1380}")
	if userspace["DaemonSet/strait-tunnel"] == nil {
		t.Error("no strait-tunnel for userspace")
	}
	if m := config(userspace)["mesh"]; fmt.Sprint(m) != "map[device:wg7 implementation:userspace mode:wireguard mtu:1380 port:51820 tunnel:external]" {
		t.Errorf("mesh %v", m)
	}
	if off := render(t, "mesh: {mode: \"off\", implementation: userspace}"); off["DaemonSet/strait-tunnel"] != nil ||
		fmt.Sprint(config(off)["mesh"]) != "map[mode:off]" {
		t.Errorf("mesh off: %v", config(off)["mesh"])
	}
	if c := config(render(t, "config: {bpf: {maxSockets: 65536}, mesh: {table: 7}}")); dig(c, "bpf", "pins") != "/sys/fs/bpf/strait" ||
		dig(c, "bpf", "maxSockets") != 65536.0 || dig(c, "mesh", "table") != 7.0 {
		t.Errorf("config is not merged: %v", c)
	}
	for values, want := range map[string]any{"{}": nil, "derivedPrefix: mc-": "mc-", "derivedPrefix: ''": ""} {
		if got := dig(config(render(t, values)), "source", "kubernetes", "derivedPrefix"); got != want {
			t.Errorf("%s: prefix %v", values, got)
		}
	}
	// A changed configuration is another pod template, and so a rolling update.
	hash := func(o map[string]map[string]any) any {
		return dig(o["DaemonSet/strait"], "spec", "template", "metadata", "annotations", "strait.io/config-hash")
	}
	if a, b := hash(plain), hash(userspace); a == nil || a == b {
		t.Errorf("config hashes %v and %v", a, b)
	}
	policy := render(t, "{admissionPolicy: true, barredNamespaces: [team-*, 'a.b']}")
	variables := dig(policy["ValidatingAdmissionPolicy/strait-barred-namespaces"], "spec", "variables").([]any)
	if got := dig(variables[0], "expression"); got != `["^(kube-system|kube-public|kube-node-lease)$","^team-.*$","^a\\.b$"]` {
		t.Errorf("barred %v", got)
	}
}

func TestMistakes(t *testing.T) {
	for values, message := range map[string]string{
		`image: {digest: "sha256:12"}`:                "image.digest",
		"image: {digest: latest}":                     "image.digest",
		"mehs: {}":                                    "value mehs",
		"mesh: {prot: 1}":                             "value mesh.prot",
		"mesh: 7":                                     "value mesh: want a table",
		"mesh: {implementation: auto}":                "mesh.implementation",
		"clusterSetIPs: [derived]":                    "clusterSetIPs",
		"{importSlices: some}":                        "importSlices",
		"cluster: Not_A_Label":                        "cluster: \"Not_A_Label\" is not a DNS label",
		"cluster: 1":                                  "cluster: 1 is not text: write it in quotes",
		"cluster: 0":                                  "cluster: 0 is not text",
		"derivedPrefix: 1-":                           "derivedPrefix",
		"acceptConfigFrom: c1":                        "acceptConfigFrom: c1 is not a list of clusters: write [c1]",
		"{acceptConfigFrom: c1, ownWritesPolicy: no}": "acceptConfigFrom: c1 is not a list of clusters",
		"acceptConfigFrom: [C1]":                      `acceptConfigFrom: "C1" is not the id of a cluster`,
		"acceptConfigFrom: [1]":                       `acceptConfigFrom: "1" is not the id of a cluster`,
		"config: {source: {kubernetes: {acceptConfigFrom: [c1.c2]}}}":                    `acceptConfigFrom: "c1.c2" is not the id`,
		"metrics: {podMonitor: {enabled: true}}":                                         "metrics.podMonitor.enabled: Prometheus cannot reach daemons whose metrics.listen is 127.0.0.1:9964",
		"{metrics: {podMonitor: {enabled: true}, listen: '[::1]:9964'}}":                 "metrics.listen is [::1]:9964",
		"{metrics: {podMonitor: {enabled: true}, listen: 'off'}}":                        "metrics.listen is off",
		"{metrics: {podMonitor: {enabled: true}}, config: {metrics: {listen: off}}}":     "metrics.listen is off",
		"{metrics: {podMonitor: {enabled: true, interval: 30}, listen: '0.0.0.0:9964'}}": "metrics.podMonitor.interval: 30 is not a time",
		"metrics: {listen: 9964}":                                                        `metrics.listen: "9964" is neither off nor an address and port`,
		"metrics: {listen: 'localhost:9964'}":                                            `metrics.listen: "localhost:9964" is neither off`,
		"config: {metrics: {listen: '1.2.3.4:0'}}":                                       `metrics.listen: "1.2.3.4:0" is neither off`,
		"metrics: {prometheusRule: {labels: prometheus}}":                                "metrics.prometheusRule.labels: prometheus is not a table",
		"derivedPrefix: Mc-":      "derivedPrefix",
		"authority: {mode: none}": `authority.mode: "none" is invalid: use auto, pinned or off`,
	} {
		v, err := chart.Read([][]byte{[]byte(values)}, nil)
		if err == nil {
			_, err = chart.Render(chart.Options{Values: v})
		}
		if err == nil || !strings.Contains(err.Error(), message) {
			t.Errorf("%s: %v, want %q", values, err, message)
		}
	}
	v, err := chart.Read([][]byte{[]byte("mesh: {port: 1, mtu: 1}"), []byte("mesh: {port: 2}")}, []string{"mesh.mtu=3,cluster=c1"})
	if err != nil || fmt.Sprint(v) != "map[cluster:c1 mesh:map[mtu:3 port:2]]" {
		t.Errorf("%v %v", v, err)
	}
}

// TestCRDs: the chart's CRDs are those of the module whose types the daemon uses.
func TestCRDs(t *testing.T) {
	for file, want := range map[string][]byte{
		"strait/files/multicluster.x-k8s.io_serviceexports.yaml": crd.ServiceExportCRD,
		"strait/files/multicluster.x-k8s.io_serviceimports.yaml": crd.ServiceImportCRD,
	} {
		if have, err := os.ReadFile(file); err != nil || !bytes.Equal(have, want) {
			t.Errorf("%s differs from sigs.k8s.io/mcs-api (%v): copy its config/crd", file, err)
		}
	}
	for name, o := range render(t, "{}") {
		if strings.HasPrefix(name, "CustomResourceDefinition/") && dig(o, "metadata", "annotations", "helm.sh/resource-policy") != "keep" {
			t.Errorf("helm uninstall would delete %s, and all that people made of it", name)
		}
	}
}

// TestVersion: whatever version the CLI was built as, the API server takes it as a label, and it is an
// image's tag.
func TestVersion(t *testing.T) {
	for version, want := range map[string]string{"v1.2.3": "v1.2.3", "(devel)": "devel", "v0.0.0-2026+dirty": "v0.0.0-2026-dirty"} {
		docs, err := chart.Render(chart.Options{Version: version})
		if err != nil {
			t.Fatal(err)
		}
		all := string(bytes.Join(docs, nil))
		if !strings.Contains(all, "app.kubernetes.io/version: \""+want+"\"") || !strings.Contains(all, "strait:"+want) {
			t.Errorf("%s: not the version %s in\n%s", version, want, all)
		}
	}
}

// configOf is the daemon's configuration in a rendered chart.
func configOf(t *testing.T, all map[string]map[string]any) (c map[string]any) {
	t.Helper()
	text, _ := dig(all["ConfigMap/strait"], "data", "strait.yaml").(string)
	if err := yaml.UnmarshalStrict([]byte(text), &c); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return c
}

// TestAuthority: a cluster that signs and pins is what one gets without a value; off is one word. What
// is mounted is what the configuration names. The root is mounted for the leader's pods alone, and
// those that wait for files which no pod makes are those of mode pinned.
func TestAuthority(t *testing.T) {
	sources := func(all map[string]map[string]any, workload string) string {
		text, err := yaml.Marshal(dig(all[workload], "spec", "template", "spec", "volumes"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	const members, pinned = "membersDir:/etc/strait-members ", "pinsFile:/etc/strait/authority/pins.yaml "
	const token = "tokenFile:/etc/strait/authority/token]"
	const files = members + pinned + token
	auto := func(secret, pins string) string {
		return "map[believeFile:/etc/strait/authority/believe make:map[believe:strait-believe pins:" + pins + " secret:" + secret + " view:strait-view] " + members + pinned +
			"publish:strait-this-cluster " + token
	}
	mounts, optional := []string{"pins.yaml", "strait-pins", "strait-believe", "strait-members", "strait.io/signer"}, []string{"root.key", "strait-authority"}
	for values, c := range map[string]struct {
		authority       string
		daemons, leader []string
	}{
		"{}":                      {auto("strait-authority", "strait-pins"), mounts, optional},
		"authority: {sign: true}": {auto("strait-authority", "strait-pins"), mounts, optional},
		"ownWritesPolicy: false":  {"map[believeFile:/etc/strait/authority/believe " + files, mounts, optional},
		"authority: {mode: null, sign: true, pin: true}": {"map[" + files, []string{"pins.yaml", "strait-pins", "strait-members", "strait.io/signer"}, optional},
		"authority: {mode: 'off'}":                       {"map[mode:off]", nil, nil},
		"authority: {mode: off}":                         {"map[mode:off]", nil, nil},
		"authority: {sign: false}":                       {"map[mode:off]", nil, nil},
		"authority: {mode: pinned}":                      {"map[" + files, []string{"pins.yaml", "strait-pins", "strait-members", "strait.io/signer"}, optional},
		"authority: {pin: true}":                         {"map[" + files, []string{"pins.yaml", "strait-pins", "strait-members", "strait.io/signer"}, optional},
		"authority: {sign: true, pin: no}":               {auto("strait-authority", "strait-pins"), mounts, optional},
		"authority: {sign: true, pin: true, secret: mine, configMap: ours}": {"map[" + files,
			[]string{"pins.yaml", "strait-members", "name: ours", "strait.io/signer"}, []string{"root.key", "name: mine"}},
	} {
		all := render(t, values)
		if got := fmt.Sprint(configOf(t, all)["authority"]); got != c.authority {
			t.Errorf("%s: authority %s", values, got)
		}
		for workload, mounted := range map[string][]string{"DaemonSet/strait": c.daemons, "Deployment/strait-leader": c.leader} {
			for _, want := range []string{"root.key", "pins.yaml", "strait-pins", "strait-believe", "strait-members", "name: ours", "strait-authority", "name: mine", "strait.io/signer"} {
				if is := strings.Contains(sources(all, workload), want); is != slices.Contains(mounted, want) {
					t.Errorf("%s: %s: %s is mounted: %v\n%s", values, workload, want, is, sources(all, workload))
				}
			}
		}
	}
	// Who waits for keys does so because they are not optional; strait-peers always is, and so are
	// seeds and members.
	for values, want := range map[string][2]int{"{}": {5, 1}, "authority: {mode: pinned}": {3, 0}, "authority: {mode: 'off'}": {2, 0}} {
		all := render(t, values)
		for i, workload := range []string{"DaemonSet/strait", "Deployment/strait-leader"} {
			if got := strings.Count(sources(all, workload), "optional: true"); got != want[i] {
				t.Errorf("%s: %s: %d sources are optional, want %d\n%s", values, workload, got, want[i], sources(all, workload))
			}
		}
	}
	v, err := chart.Read([][]byte{[]byte("authority: {sign: false, pin: true}")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := chart.Render(chart.Options{Namespace: "strait-system", Version: "1", Values: v}); err == nil || !strings.Contains(err.Error(), "needs authority.sign") {
		t.Errorf("pins without a root: %v", err)
	}
}

// TestNullsAreKept: settings that are read together each take a value away, in one table or at the top.
func TestNullsAreKept(t *testing.T) {
	given, err := chart.Read(nil, []string{"authority.sign=null", "authority.pin=null,cluster=null", "mesh=null"})
	if err != nil {
		t.Fatal(err)
	}
	before := chart.Values{"cluster": "c1", "authority": map[string]any{"sign": true, "pin": true, "secret": "s"}, "mesh": map[string]any{"mode": "off"}}
	if got := fmt.Sprint(map[string]any(chart.Merge(before, given))); got != "map[authority:map[secret:s]]" {
		t.Errorf("what is left: %s", got)
	}
}
