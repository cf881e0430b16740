package kube

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"strait.io/strait/internal/testutil"
	"strait.io/strait/test/pages"
)

// TestScenarioA1 is Kilo's peer that is no node: a machine with plain WireGuard tools calls a Service of
// another cluster at its ClusterSetIP, which the derived Service holds, so that kube-proxy on the entry
// node translates it. The commands for the cluster are those of docs/from/kilo.md. test/e2e has the rest of the
// row, without Kubernetes.
func TestScenarioA1(t *testing.T) {
	if _, err := exec.LookPath("wg"); err != nil {
		testutil.Missing(t, "needs wg: run `make setup` as root")
	}
	o := newOps(t)
	o.startServers(t, "c2")
	vip := o.vip(t, "c1", "ops-c2")
	const services = "10.201.0.0/16" // as the page says
	l := o.plugLaptop(t)
	peer := o.inStrait(t, "c1n1", "peer", "showconf", "node", "c1n1", "--as-peer", "--allowed-ips", services+",10.12.0.0/16")
	public := l.join(t, peer, services, "10.12.0.0/16")

	all, err := pages.Load(os.DirFS(root))
	must(t, err)
	blocks := pages.Of(all, pages.Peers)
	if len(blocks) != 1 {
		t.Fatalf("%d blocks to execute, want one", len(blocks))
	}
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "laptop.pub"), []byte(public), 0o600))
	must(t, o.scriptIn(t, dir, o.commands(t), blocks[0].Script()))
	t.Cleanup(func() {
		_, err := o.Kubectl(context.Background(), "c1", nil, "-n", "strait-system", "delete", "configmap", "strait-peers", "--ignore-not-found")
		if err != nil {
			t.Error(err)
		}
	})
	const kubelet = 30 * time.Second
	testutil.Eventually(t, kubelet, func() error { return l.get("http://" + vip + "/hostname") })
	_, pod := podOn(t, "c2", "ops-c2", "c2n1")
	if err := l.get("http://" + pod + ":8080/hostname"); err == nil {
		t.Errorf("the laptop calls a pod at %s, which its pin does not have", pod)
	}
	if list := o.inStrait(t, "c1n1", "peer", "list", "--ascii"); !strings.Contains(list, "ok accepted") || strings.Contains(list, "no kube-proxy") {
		t.Errorf("strait peer list on the entry node:\n%s", list)
	}
	testutil.Eventually(t, kubelet, func() error { // its own kubelet can be later
		if list := o.inStrait(t, "c1n2", "peer", "list", "--ascii"); !strings.Contains(list, "accepted by other nodes") {
			return fmt.Errorf("strait peer list on another node:\n%s", list)
		}
		return nil
	})
	kubectl(t, "c1", "-n", "strait-system", "delete", "configmap", "strait-peers")
	kubectl(t, "c1", "-n", "strait-system", "annotate", "pods", "--all", "--overwrite", "strait.io/peers=gone")
	began := time.Now()
	testutil.Eventually(t, kubelet, func() error {
		if l.get("http://"+vip+"/hostname") == nil {
			return errors.New("the laptop still calls the Service")
		}
		return nil
	})
	t.Logf("the laptop was out %.1f s after its pin", time.Since(began).Seconds())
}

// laptop is a machine on a network of its own beside the nodes, with a WireGuard device.
type laptop struct{ ns, device string }

func (o *ops) plugLaptop(t *testing.T) laptop {
	t.Helper()
	l := laptop{o.Name + "-laptop", "wgkube"}
	fabric := o.Name + "-fabric"
	run(t, "ip", "netns", "add", l.ns)
	t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", l.ns).Run() })
	run(t, "ip", "link", "add", "laptop0", "netns", fabric, "type", "veth", "peer", "name", "eth0", "netns", l.ns)
	for _, end := range []struct{ ns, link, addr string }{{fabric, "laptop0", "172.30.200.1/30"}, {l.ns, "eth0", "172.30.200.2/30"}} {
		run(t, "ip", "-n", end.ns, "addr", "add", end.addr, "dev", end.link)
		run(t, "ip", "-n", end.ns, "link", "set", end.link, "up")
	}
	run(t, "ip", "-n", l.ns, "route", "add", "default", "via", "172.30.200.1")
	tool := filepath.Join(t.TempDir(), "wireguard-go")
	run(t, "go", "build", "-o", tool, "golang.zx2c4.com/wireguard")
	cmd := exec.Command("ip", "netns", "exec", l.ns, tool, "-f", l.device)
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // an error means that it is dead already
		_ = cmd.Wait()
		os.Remove("/var/run/wireguard/" + l.device + ".sock")
	})
	testutil.Eventually(t, 20*time.Second, func() error { return exec.Command("wg", "show", l.device).Run() })
	return l
}

// join configures the device with a peer, through which it calls what is routed. It returns its public key.
func (l laptop) join(t *testing.T, peer string, routed ...string) (public string) {
	t.Helper()
	private := run(t, "wg", "genkey")
	file := filepath.Join(t.TempDir(), "wg.conf")
	must(t, os.WriteFile(file, []byte("[Interface]\nPrivateKey = "+private+"\n"+peer), 0o600))
	run(t, "wg", "setconf", l.device, file)
	run(t, "ip", "-n", l.ns, "addr", "add", "10.99.0.2/32", "dev", l.device)
	run(t, "ip", "-n", l.ns, "link", "set", l.device, "mtu", "1280", "up")
	for _, p := range routed {
		run(t, "ip", "-n", l.ns, "route", "add", p, "dev", l.device, "src", "10.99.0.2")
	}
	return run(t, "wg", "show", l.device, "public-key")
}

func (l laptop) get(url string) error {
	out, err := exec.Command("ip", "netns", "exec", l.ns, "curl", "-sS", "--fail", "--max-time", "2", url).CombinedOutput()
	if err != nil {
		return fmt.Errorf("curl %s: %w: %s", url, err, out)
	}
	return nil
}

func run(t *testing.T, argv ...string) string {
	t.Helper()
	out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(argv, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}
