package kube

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"strait.io/strait/internal/testutil"
	"strait.io/strait/test/kubelab"
	"strait.io/strait/test/pages"
)

const (
	// whereami is a pod that says which it is. It is ready while its gate is open.
	whereami = `
apiVersion: v1
kind: Pod
metadata: {name: whereami-%[1]s, namespace: whereami, labels: {app: whereami}}
spec:
  terminationGracePeriodSeconds: 0
  readinessGates: [{conditionType: example.com/open}]
  containers: [{name: serve, image: "localhost/agnhost:1", args: [netexec, --http-port=8080]}]
`
	ingressClass = `
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: traefik}
spec: {controller: traefik.io/ingress-controller}
`
	// traefikPort is where Traefik answers on its node.
	traefikPort = "18080"
)

// TestScenarioD is GKE's Multi Cluster Ingress, by the commands of docs/from/gke.md, with Traefik: c1 is the
// config cluster, and c2 accepts its configuration. Requests reach pods of both clusters, those of the other
// one when a cluster's turn unready, and a cluster that is not listed any more has no derived Service. What c2
// has stays while c1's API server is away, and goes when c2 accepts nothing more.
func TestScenarioD(t *testing.T) {
	o := newOps(t)
	for _, c := range []string{"c1", "c2"} {
		kubectl(t, c, "create", "namespace", "whereami")
		t.Cleanup(func() {
			for _, args := range [][]string{
				{"namespace", "whereami"}, {"ingressclass", "traefik"}, {"crd", "multiclusterservices.networking.gke.io", "multiclusteringresses.networking.gke.io"},
			} {
				if _, err := o.Kubectl(context.Background(), c, nil, append([]string{"delete", "--ignore-not-found", "--timeout=90s"}, args...)...); err != nil {
					t.Error(err)
				}
			}
		})
		must(t, o.Apply(t.Context(), c, fmt.Sprintf(whereami, c)))
		o.gate(t, c, corev1.ConditionTrue)
	}
	must(t, o.Apply(t.Context(), "c1", ingressClass))
	traefik(t, o.Lab, "c1", "c1n1")

	all, err := pages.Load(os.DirFS(root))
	must(t, err)
	path, blocks := o.commands(t), pages.Of(all, pages.GKE)
	if len(blocks) != 6 {
		t.Fatalf("%d blocks to execute, want 6: kinds, accept, MultiClusterService, MultiClusterIngress, another list of clusters, accept no more", len(blocks))
	}
	must(t, o.script(t, path, blocks[0].Script()))
	kubectl(t, "c1", "wait", "crd/multiclusterservices.networking.gke.io", "crd/multiclusteringresses.networking.gke.io", "--for=condition=Established", "--timeout=30s")
	back := sync.OnceFunc(func() {
		if out, err := exec.Command("env", "KUBECACHEDIR="+o.KubectlCache(), "KUBECONFIG="+o.Kubeconfig(), "bash", "-c", "PATH="+path+":$PATH; "+blocks[5].Script()).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
	t.Cleanup(back)
	for _, b := range blocks[1:4] {
		must(t, o.script(t, path, b.Script()))
	}
	derived := o.derivedOf(t, "c1")
	o.obeys(t, derived)
	testutil.Eventually(t, within, func() error {
		class := kubectl(t, "c2", "-n", "whereami", "get", "ingress", "whereami-ingress", "--ignore-not-found", "-o", "jsonpath={.spec.ingressClassName}")
		return equal("class of c2's Ingress", class, "traefik")
	})
	o.answeredThroughTraefik(t, "whereami-c1", "whereami-c2")
	testutil.Eventually(t, within, func() error {
		return equal("VIP", kubectl(t, "c1", "-n", "whereami", "get", "multiclusteringress", "whereami-ingress", "-o", "jsonpath={.status.VIP}"), "172.31.1.1")
	})

	// Fail-over, in both directions. Traefik gathers changes for two seconds.
	var took []time.Duration
	for _, c := range []string{"c1", "c2", "c1"} {
		o.gate(t, c, corev1.ConditionFalse)
		took = append(took, o.answeredThroughTraefik(t, map[string]string{"c1": "whereami-c2", "c2": "whereami-c1"}[c]))
		o.gate(t, c, corev1.ConditionTrue)
		o.answeredThroughTraefik(t, "whereami-c1", "whereami-c2")
	}
	slices.Sort(took)
	t.Logf("with the pods of a cluster not ready, the other answered every request after: median %v of %v", took[1], took)
	if took[1] > 5*time.Second {
		t.Errorf("fail-over takes %v, want less than 5 s", took[1])
	}

	must(t, o.script(t, path, blocks[4].Script()))
	o.lacks(t, "c2", "service/"+derived)
	o.answeredThroughTraefik(t, "whereami-c1")
	kubectl(t, "c1", "-n", "whereami", "patch", "multiclusterservices.networking.gke.io", "whereami-mcs", "--type=merge", "-p", `{"spec":{"clusters":null}}`)
	o.obeys(t, derived)
	o.answeredThroughTraefik(t, "whereami-c1", "whereami-c2")

	// The config cluster's API server is away, and c2 reads anew what it obeys.
	uid := kubectl(t, "c2", "-n", "whereami", "get", "service", derived, "-o", "jsonpath={.metadata.uid}")
	must(t, o.StopAPIServer(t.Context(), "c1"))
	start := sync.OnceFunc(func() {
		if err := o.StartAPIServer(context.Background(), "c1"); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(start)
	for _, n := range []string{"c2n1", "c2n2"} {
		o.restartDaemon(t, "c2", n)
	}
	time.Sleep(10 * time.Second)
	if now := kubectl(t, "c2", "-n", "whereami", "get", "service", derived, "-o", "jsonpath={.metadata.uid}"); now != uid {
		t.Errorf("while c1's API server was away, c2 made its derived Service anew: %q, was %q", now, uid)
	}
	o.answeredThroughTraefik(t, "whereami-c1", "whereami-c2")
	start()

	back()
	o.lacks(t, "c2", "service/"+derived)
	o.lacks(t, "c2", "ingress/whereami-ingress")
	o.answeredThroughTraefik(t, "whereami-c1")
}

// obeys waits until c2 has the derived Service, and explains where it comes from.
func (o *ops) obeys(t *testing.T, derived string) {
	t.Helper()
	testutil.Eventually(t, within, func() error {
		headless := kubectl(t, "c2", "-n", "whereami", "get", "service", derived, "--ignore-not-found", "-o", `jsonpath={.spec.clusterIP} {.spec.selector} {.metadata.labels.strait\.io/config-cluster}`)
		if err := equal("derived Service of c2", headless, `None {"app":"whereami"} c1`); err != nil {
			return err
		}
		text, err := o.In(t.Context(), []string{"c2n1"}, kubelab.DaemonContainer, "/strait", "explain", "whereami/"+derived)
		if err == nil && !strings.Contains(text, "c1/whereami/whereami-mcs of c2") {
			err = fmt.Errorf("strait explain in c2 does not name the object of c1: %s", text)
		}
		return err
	})
}

// lacks waits until a cluster has no such object.
func (o *ops) lacks(t *testing.T, cluster, object string) {
	t.Helper()
	testutil.Eventually(t, within, func() error {
		out, err := o.Kubectl(t.Context(), cluster, nil, "-n", "whereami", "get", object, "--ignore-not-found", "-o", "name")
		if err == nil && out != "" {
			err = fmt.Errorf("%s still has %s", cluster, out)
		}
		return err
	})
}

// gate opens or closes the readiness gate of a cluster's pod.
func (o *ops) gate(t *testing.T, cluster string, open corev1.ConditionStatus) {
	t.Helper()
	pod := "whereami-" + cluster
	m := clientOf(t, o.Lab, cluster)
	patch := fmt.Sprintf(`{"status":{"conditions":[{"type":"example.com/open","status":%q}]}}`, open)
	kubectl(t, cluster, "-n", "whereami", "patch", "pod", pod, "--subresource=status", "-p", patch)
	testutil.Eventually(t, within, func() error {
		p, err := m.core.CoreV1().Pods("whereami").Get(t.Context(), pod, metav1.GetOptions{})
		if err != nil {
			return err
		}
		i := slices.IndexFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady })
		if i < 0 || p.Status.Conditions[i].Status != open {
			return fmt.Errorf("pod %s of %s is not Ready=%s yet", pod, cluster, open)
		}
		return nil
	})
}

// derivedOf waits for the headless Service of a cluster, and returns its name.
func (o *ops) derivedOf(t *testing.T, cluster string) (name string) {
	t.Helper()
	testutil.Eventually(t, within, func() error {
		out, err := o.Kubectl(t.Context(), cluster, nil, "-n", "whereami", "get", "services", "-l", "strait.io/multi-cluster-service=whereami-mcs", "-o", "jsonpath={.items[*].metadata.name}")
		if name = strings.TrimSpace(out); err == nil && !strings.HasPrefix(name, "mci-whereami-mcs-svc-") {
			err = fmt.Errorf("%s has %q for the MultiClusterService", cluster, name)
		}
		return err
	})
	return name
}

// answeredThroughTraefik waits until requests through the controller are answered by just these pods, and
// returns how long that took.
func (o *ops) answeredThroughTraefik(t *testing.T, pods ...string) time.Duration {
	t.Helper()
	start := time.Now()
	testutil.Eventually(t, within, func() error {
		out, err := o.OnNode(t.Context(), "c1n2", "curl", "-sS", "--max-time", "2", "-w", `\n`, "http://172.31.1.1:"+traefikPort+"/hostname?[1-12]")
		if err != nil {
			return err
		}
		return equal("answers", slices.Compact(slices.Sorted(slices.Values(strings.Fields(out)))), pods)
	})
	return time.Since(start)
}

var serverOf = regexp.MustCompile(`"server": "[^"]*"`)

// traefik runs the ingress controller on a node of a cluster, in the node's network, until the test ends.
func traefik(t *testing.T, l *kubelab.Lab, cluster, node string) {
	t.Helper()
	config, err := os.ReadFile(l.ConfigOf(cluster))
	must(t, err)
	for _, c := range l.Topology.Clusters {
		if c.Name == cluster {
			config = serverOf.ReplaceAll(config, fmt.Appendf(nil, `"server": "https://%s:6443"`, c.Gateway))
		}
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, os.WriteFile(file, config, 0o600))
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, "nsenter", "--net=/run/netns/"+l.Name+"-"+node, filepath.Join(l.Programs, "traefik"),
		"--entrypoints.web.address=:"+traefikPort, "--providers.kubernetesingress=true", "--providers.kubernetesingress.ingressclass=traefik",
		"--providers.kubernetesingress.ingressendpoint.ip=172.31.1.1", "--global.checknewversion=false", "--global.sendanonymoususage=false", "--log.level=INFO")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+file)
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	must(t, cmd.Start())
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // killed
		if t.Failed() {
			text := log.String()
			t.Logf("traefik says:\n%s", text[max(0, len(text)-4000):])
		}
	})
}
