package chart_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	v2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"helm.sh/helm/v4/pkg/strvals"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"strait.io/strait/install/chart"
)

// helmChart returns the chart as Helm reads it.
func helmChart(t *testing.T) *v2.Chart {
	t.Helper()
	var files []*archive.BufferedFile
	err := filepath.Walk("strait", func(name string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		data, err := os.ReadFile(name)
		files = append(files, &archive.BufferedFile{Name: strings.TrimPrefix(name, "strait/"), Data: data})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	c, err := loader.LoadFiles(files)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// helm renders the chart as helm template does, at an API server that also has these APIs; the
// result is by "Kind/name".
func helm(t *testing.T, values chart.Values, apis ...string) map[string]map[string]any {
	t.Helper()
	c := helmChart(t)
	release := common.ReleaseOptions{Name: "strait", Namespace: chart.Namespace, IsInstall: true}
	server := *common.DefaultCapabilities
	server.APIVersions = append(slices.Clone(server.APIVersions), apis...)
	all, err := util.ToRenderValues(c, values, release, &server)
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := engine.Render(c, all)
	if err != nil {
		t.Fatal(err)
	}
	var docs [][]byte
	for name, text := range rendered {
		if path.Ext(name) == ".yaml" {
			for doc := range strings.SplitSeq("\n"+text, "\n---") {
				docs = append(docs, []byte(doc))
			}
		}
	}
	return objects(t, docs)
}

// helmValues are those with which the chart is rendered as by Helm.
var helmValues = []string{
	"{}",
	"createNamespace: true\ninstallCRDs: false\ncluster: null",
	"cluster: '1'",
	"cluster: us-east\nmesh: {implementation: userspace, mtu: 1380, port: 51821}",
	"mesh: {mode: 'off'}\ngossip: {port: 7000}\nlog: {level: debug, format: json}",
	"admissionPolicy: true\nbarredNamespaces: [team-*, 'a?', '[ab]c', x.y]",
	"admissionPolicy: true\nbarredNamespaces: [x]\nconfig: {source: {kubernetes: {barredNamespaces: ['team-[a-c]']}}}",
	"admissionPolicy: true\nbarredNamespaces: [x]\nconfig: {source: {kubernetes: {barredNamespaces: []}}}",
	"image: {repository: reg:5000/strait, digest: 'sha256:0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a'}\nimagePullSecrets: [{name: pull}]",
	"image: {tag: v1.2.3, pullPolicy: Never}\npodAnnotations: {a: b}\ncommonLabels: {team: net}",
	"bpf: {mount: true}\ncgroup: {path: /run/cg, hostPath: /run/cg, allowVirtualRoot: true}",
	"bpf: {destroySockets: false}",
	"acceptConfigFrom: [c1, c2]",
	"config: {source: {kubernetes: {acceptConfigFrom: [c1]}}}",
	"authority: {sign: true}\nleader: {replicas: 3, resources: null, nodeSelector: {trusted: 'yes', 'kubernetes.io/os': other}}",
	"authority: {mode: 'off'}",
	"authority: {mode: pinned}\nleader: {affinity: null}",
	"authority: {sign: false}\naffinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: []}}}",
	"ownWritesPolicy: false",
	"authority: {sign: true, pin: true, secret: s, configMap: c}\nseLinuxOptions: {type: spc_t}",
	"bpf: {mount: true}\nmesh: {implementation: userspace}\nseLinuxOptions: {type: spc_t}",
	"dns: {listen: ['169.254.20.10:53'], upstreams: ['10.0.0.10:53'], fallThrough: cluster.local}",
	"config: {bpf: {maxSockets: 65536}, mesh: {table: 7}, gossip: {bind: '[::]:7946'}, metrics: {listen: 'off'}}",
	"clusterSetIPs: cidr\nclusterSetCIDRs: [241.0.0.0/8]\nimportSlices: none",
	"derivedPrefix: ''",
	"tolerations: [{key: a, operator: Exists}]\nnodeSelector: {zone: b}\naffinity: {nodeAffinity: {}}\nresources: null",
	"metrics: {podMonitor: {enabled: true, labels: {release: p}}, prometheusRule: {enabled: true}, dashboards: {enabled: true, labels: {team: net}}}\nconfig: {metrics: {listen: '0.0.0.0:9965'}}",
	"metrics: {podMonitor: {enabled: true}, listen: '[::]:9964'}",
	"metrics: {listen: 'off'}",
	"openshift: {securityContextConstraints: true}\nmesh: {implementation: userspace}\nbpf: {mount: true}",
	"networkPolicy: false\nleader: {replicas: 1}\nview: {replicas: 1}",
	"view: {enabled: false}\nmesh: {implementation: userspace}",
	"updateStrategy: {type: OnDelete, rollingUpdate: null}",
}

// TestHelm: strait install, helm install and the manifests are one thing.
func TestHelm(t *testing.T) {
	for _, values := range helmValues {
		v, err := chart.Read([][]byte{[]byte(values)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		docs, err := chart.Render(chart.Options{Values: v})
		if err != nil {
			t.Fatalf("%s: %v", values, err)
		}
		ours, theirs := objects(t, docs), helm(t, v)
		for id := range hooks(theirs) {
			if id != "Pod/strait-test" || ours[id] != nil {
				t.Errorf("%s: %s is a hook of Helm, and made without Helm: %v", values, id, ours[id] != nil)
			}
			delete(theirs, id)
		}
		for name := range theirs {
			mustManage(t, name, ours[name], theirs[name])
			a, _ := yaml.Marshal(ours[name])
			b, _ := yaml.Marshal(theirs[name])
			if !bytes.Equal(a, b) {
				t.Errorf("%s: %s is\n%s\nbut of Helm\n%s", values, name, a, b)
			}
		}
		if len(ours) != len(theirs) {
			t.Errorf("%s: %d objects, of Helm %d", values, len(ours), len(theirs))
		}
	}
}

// hooks are the objects that Helm makes only at some time.
func hooks(all map[string]map[string]any) map[string]map[string]any {
	out := maps.Clone(all)
	maps.DeleteFunc(out, func(_ string, o map[string]any) bool { return dig(o, "metadata", "annotations", "helm.sh/hook") == nil })
	return out
}

// TestHelmTest: what helm test runs asks a daemon about all nodes, on a socket that the pod's user
// may open and the daemon makes.
func TestHelmTest(t *testing.T) {
	for values, want := range map[string]string{
		"{}":                        "65532 /run/strait/view",
		"view: {enabled: false}":    "0 /run/strait",
		"seLinuxOptions: {type: a}": "65532 /run/strait/view",
	} {
		v, err := chart.Read([][]byte{[]byte(values)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		all := hooks(helm(t, v))
		pod := decode[corev1.Pod](t, all, "Pod/strait-test").Spec
		dir := pod.Volumes[0].HostPath.Path
		if got := fmt.Sprint(*pod.SecurityContext.RunAsUser, " ", dir); got != want || len(all) != 1 {
			t.Errorf("%s: %s in %d objects, want %s", values, got, len(all), want)
		}
		for _, c := range append(pod.InitContainers, pod.Containers...) {
			if !slices.Contains(c.Command, "--socket="+dir+"/strait.sock") || !slices.Contains(c.Command, "--node=*") || c.VolumeMounts[0].MountPath != dir {
				t.Errorf("%s: %v in %+v", values, c.Command, c.VolumeMounts)
			}
			if s := c.SecurityContext; len(s.Capabilities.Add) > 0 || fmt.Sprint(s.Capabilities.Drop) != "[ALL]" || !*s.ReadOnlyRootFilesystem || !c.VolumeMounts[0].ReadOnly ||
				(s.SELinuxOptions != nil) != strings.Contains(values, "seLinux") {
				t.Errorf("%s: what it may do: %+v", values, s)
			}
		}
		if *pod.AutomountServiceAccountToken || pod.RestartPolicy != corev1.RestartPolicyNever {
			t.Errorf("%s: %+v", values, pod)
		}
	}
}

// mustManage wants an object to say that Helm manages it if Helm made it alone, and takes that
// label off, which is the one difference.
func mustManage(t *testing.T, name string, ours, theirs map[string]any) {
	t.Helper()
	const label = "app.kubernetes.io/managed-by"
	if dig(ours, "metadata", "labels", label) != nil || dig(theirs, "metadata", "labels", label) != "Helm" {
		t.Errorf("%s: it is managed by %v, and that of Helm by %v", name, dig(ours, "metadata", "labels", label), dig(theirs, "metadata", "labels", label))
		return
	}
	delete(theirs["metadata"].(map[string]any)["labels"].(map[string]any), label)
}

// TestTypo: Helm refuses a value that the chart does not have, or cannot mean, and names it.
func TestTypo(t *testing.T) {
	for typo, want := range map[string]string{
		"mesh: {mdoe: 'off'}":                      "/mesh': additional properties 'mdoe' not allowed",
		"foo: 1":                                   "additional properties 'foo' not allowed",
		"mesh: {mode: of}":                         "/mesh/mode': value must be one of 'wireguard', 'off'",
		"gossip: {port: 70000}":                    "/gossip/port': maximum: got 70,000, want 65,535",
		"cluster: 1":                               "/cluster': got number, want string",
		"exposeAs: [ClusterIP]":                    "/exposeAs/0': value must be one of 'NodePort', 'LoadBalancer'",
		"image: {digest: latest}":                  "/image/digest': 'latest' does not match pattern",
		"clusterSetCIDRs: 241.0.0.0/8":             "/clusterSetCIDRs': got string, want array",
		"leader: {replica: 1}":                     "/leader': additional properties 'replica' not allowed",
		"metrics: {listen: localhost:9964}":        "/metrics/listen': 'localhost:9964' does not match pattern",
		"metrics: {podMonitor: {interval: often}}": "/metrics/podMonitor/interval': 'often' does not match pattern",
	} {
		var v map[string]any
		if err := yaml.Unmarshal([]byte(typo), &v); err != nil {
			t.Fatal(err)
		}
		_, err := util.ToRenderValues(helmChart(t), v, common.ReleaseOptions{Name: "strait", Namespace: chart.Namespace}, common.DefaultCapabilities)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %s", typo, err, want)
		}
	}
}

// TestSet: --set means what it means to Helm.
func TestSet(t *testing.T) {
	for _, s := range []string{"a=b", "a.b.c=1,d=true", "a=null", "a={x,2,false}", "a={}", "a=0123", "a=0", "a=-7", `a\.b=c`, `a=x\,y`,
		"a=", "a=b=c", "log.level=debug", "a.b=1,a.c=2"} {
		got, err := chart.Read(nil, []string{s})
		want, helmErr := strvals.Parse(s)
		if err != nil || helmErr != nil || fmt.Sprintf("%#v", map[string]any(got)) != fmt.Sprintf("%#v", want) && s != "a={}" {
			t.Errorf("%s: %v %v, of Helm %v %v", s, got, err, want, helmErr)
		}
	}
	// Only what the chart has as text stays text, where Helm wants --set-string.
	for s, want := range map[string]string{
		"cluster=1": `{cluster: "1"}`, "cluster=true": `{cluster: "true"}`, "cluster=007": `{cluster: "007"}`, "cluster=null": "{cluster: null}",
		"image.tag=20,image.digest=": `{image: {tag: "20", digest: ""}}`, "mesh.port=1,mesh.mode=0": `{mesh: {port: 1, mode: "0"}}`,
		"bpf.mount=true,podAnnotations.a=1": "{bpf: {mount: true}, podAnnotations: {a: 1}}",
	} {
		var tree map[string]any
		if err := yaml.Unmarshal([]byte(want), &tree); err != nil {
			t.Fatal(err)
		}
		a, err := chart.Read(nil, []string{s})
		have, _ := yaml.Marshal(a)
		if wanted, _ := yaml.Marshal(tree); err != nil || string(have) != string(wanted) {
			t.Errorf("%s: %s %v, want %s", s, have, err, wanted)
		}
	}
	for _, s := range []string{"a", "=b", "a[0]=b"} {
		if v, err := chart.Read(nil, []string{s}); err == nil {
			t.Errorf("%s: %v, want an error", s, v)
		}
	}
}
