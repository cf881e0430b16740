package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"strait.io/strait/internal/testutil"
)

// TestScenarioA1 is Kilo's peering. Clusters have a tunnel from each node to each node of the other,
// without a line of configuration for it. A machine with plain WireGuard tools becomes a peer by one
// command, reaches what its pin says and nothing else, and is gone as soon as the pin is.
func TestScenarioA1(t *testing.T) {
	s := newSite(t, "2")
	for device := range 4 {
		peers := strings.Fields(s.must(exec.Command("wg", "show", fmt.Sprintf("strait%d", device+1), "latest-handshakes")))
		if len(peers) != 4 || slices.Contains(peers, "0") { // two peers, each with its time
			t.Errorf("strait%d: handshakes %q, want one with each of the other cluster's two nodes", device+1, peers)
		}
	}
	const (
		near, neighbour, far = "10.1.1.10:8080", "10.1.2.10:8080", "10.2.1.10:8080"
		nodeInside           = "10.1.1.1:7946" // the daemon's port, which other clusters' nodes reach
		service              = "10.96.0.10:80"
	)
	// What kube-proxy writes for a derived Service whose pod is in the other cluster.
	s.in("strait-us-east-1", "nft", "add table ip proxy; add chain ip proxy services { type nat hook prerouting priority dstnat; }; "+
		"add rule ip proxy services ip daddr 10.96.0.10 tcp dport 80 dnat to "+far)
	l := newLaptop(s)
	l.reaches(true, near, service)
	l.widen("10.1.0.0/16,10.2.0.0/16,10.96.0.0/16,241.0.0.0/8")
	l.reaches(false, neighbour, far, nodeInside, "10.1.1.1:53")
	if list := s.strait("us-east-1", "peer", "list", "--ascii"); !strings.Contains(list, "ok accepted") || strings.Contains(list, "never") {
		t.Errorf("after a call, strait peer list says:\n%s", list)
	}
	for _, spoofed := range []string{"10.99.0.3", "10.2.1.20"} { // beside the pin, and a pod of the other cluster
		s.in(laptop, "ip", "addr", "add", spoofed+"/32", "dev", laptopDevice)
		if answer, err := call(spoofed, near, time.Second); err == nil {
			t.Errorf("from %s, outside of its pin, the laptop reaches %s: %s", spoofed, near, answer)
		}
	}

	l.pin(laptopAddr + "/32")
	l.reaches(true, near)
	l.reaches(false, service, neighbour, far, nodeInside)
	l.pin(laptopAddr+"/32", "--to", "10.1.2.0/24", "--to", "10.2.0.0/16")
	l.reaches(true, near, neighbour, far)
	l.reaches(false, service, nodeInside)

	l.pin(laptopAddr+"/32", "--to", "241.0.0.0/8")
	l.says("STR2106", "no kube-proxy serves them", "headless")
	l.reaches(true, near)
	l.pin("10.2.1.0/24") // the other cluster's pods
	l.says("STR2106", "its range 10.2.1.0/24 overlaps")
	l.reaches(false, near)
	l.pin(laptopAddr + "/32")
	l.reaches(true, near)

	s.on("strait-us-east-1", s.page()[4])
	testutil.Eventually(t, patience, func() error {
		if strings.Contains(s.must(exec.Command("wg", "show", "strait1", "peers")), l.public) {
			return errors.New("the device still has the peer")
		}
		return nil
	})
	l.reaches(false, near)
}

// TestScenarioA2 is Kilo's forms of configuration: what is printed is what wg takes, the graph is that
// of the tunnels in force, and both are the same when they are asked for again.
func TestScenarioA2(t *testing.T) {
	s := newSite(t, "2")
	s.plug()
	s.device(laptop, laptopDevice)
	private := strings.TrimSpace(s.must(exec.Command("wg", "genkey")))
	if err := os.WriteFile(filepath.Join(s.tools, "own.key"), []byte(private), 0o600); err != nil {
		t.Fatal(err)
	}
	byHand := strings.NewReplacer("DEVICE", laptopDevice, "FILE", "own.key").Replace(s.page()[0])
	nodes := map[string]string{} // names, by key
	var list struct {
		Items []struct {
			Cluster, Name string
			Peer          struct{ PublicKey string }
		}
	}
	if err := json.Unmarshal([]byte(s.strait("us-east-1", "nodes", "-o", "json")), &list); err != nil {
		t.Fatal(err)
	}
	for _, n := range list.Items {
		nodes[n.Peer.PublicKey] = n.Cluster + "/" + n.Name
	}
	tunnels := map[string]bool{}
	for i, node := range []string{"us-east-1", "us-east-2", "us-west-1", "us-west-2"} {
		device := fmt.Sprintf("strait%d", i+1)
		conf := s.strait("us-east-1", "peer", "showconf", "node", node)
		if strings.Contains(conf, "PrivateKey") || conf != s.strait("us-east-1", "peer", "showconf", "node", node) {
			t.Errorf("the configuration of %s has a private key, or is another each time:\n%s", node, conf)
		}
		if err := os.WriteFile(filepath.Join(s.tools, "node.conf"), []byte(conf), 0o600); err != nil {
			t.Fatal(err)
		}
		s.on(laptop, byHand)
		if got := strings.TrimSpace(s.in(laptop, "wg", "show", laptopDevice, "private-key")); got != private {
			t.Errorf("%s: after the page, the device has another private key than the file's", node)
		}
		// The underlay of a node can be where its packets came from, which here is the same.
		for _, what := range []string{"peers", "allowed-ips", "endpoints", "fwmark"} {
			got, want := sortedLines(s.must(exec.Command("wg", "show", laptopDevice, what))), sortedLines(s.must(exec.Command("wg", "show", device, what)))
			if !slices.Equal(got, want) {
				t.Errorf("%s: wg made %s %q of the configuration, the node has %q", node, what, got, want)
			}
		}
		self := nodes[strings.TrimSpace(s.must(exec.Command("wg", "show", device, "public-key")))]
		for _, key := range strings.Fields(s.must(exec.Command("wg", "show", device, "peers"))) {
			tunnels[edge(self, nodes[key])] = true
		}
	}
	dot := s.strait("us-east-1", "graph", "-o", "dot")
	drawn := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^  "(\S+)" -- "(\S+)"`).FindAllStringSubmatch(dot, -1) {
		drawn[edge(m[1], m[2])] = true
	}
	if len(tunnels) != 4 || !maps.Equal(drawn, tunnels) {
		t.Errorf("the graph has %v, the devices have %v", drawn, tunnels)
	}
	for _, form := range []string{"dot", "mermaid", "text"} {
		if a, b := s.strait("us-west-2", "graph", "-o", form), s.strait("us-west-2", "graph", "-o", form); a != b {
			t.Errorf("two graphs:\n%s\n%s", a, b)
		}
	}
	unknown := exec.Command(filepath.Join(s.bin, "strait"), "--socket", filepath.Join(demoFolder(s.bin), "us-east-1/run/strait.sock"),
		"peer", "showconf", "node", "nobody")
	if out, err := unknown.CombinedOutput(); err == nil || unknown.ProcessState.ExitCode() != 1 {
		t.Errorf("a node that is none: exit code %d\n%s", unknown.ProcessState.ExitCode(), out)
	}
}

func edge(a, b string) string { return min(a, b) + " " + max(a, b) }

func sortedLines(s string) []string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	slices.Sort(lines)
	return lines
}

// laptopPeer is the machine with the peer that it is, and its pin.
type laptopPeer struct {
	site
	entry, file, public string
}

// newLaptop makes the laptop a peer of the node us-east-1 as docs/from/kilo.md says.
func newLaptop(s site) laptopPeer {
	s.Helper()
	const entry = "us-east-1"
	s.plug()
	folder := filepath.Join(demoFolder(s.bin), entry)
	l := laptopPeer{site: s, entry: entry, file: filepath.Join(folder, "peers.yaml")}
	s.tool("strait", fmt.Sprintf(`case "$1 $2" in "peer add" | "peer remove") set -- "$@" --file %s ;; esac`+"\n"+`exec %s "$@"`, l.file, filepath.Join(s.bin, "strait")))
	// The kernel may have no WireGuard.
	ip, err := exec.LookPath("ip")
	if err != nil {
		s.Fatal(err)
	}
	s.tool("ip", fmt.Sprintf(`if [ "$*" = "link add %[1]s type wireguard" ]; then exec wireguard-go %[1]s 2>/dev/null; fi`+"\n"+`exec %[2]s "$@"`, laptopDevice, ip))
	blocks := s.page()
	s.on(laptop, blocks[1])
	s.on("strait-"+entry, blocks[2], "STRAIT_SOCKET="+filepath.Join(folder, "run", "strait.sock"))
	s.on(laptop, strings.ReplaceAll(blocks[3], "wg0", laptopDevice))
	l.public = strings.TrimSpace(s.in(laptop, "wg", "show", laptopDevice, "public-key"))
	return l
}

// widen lets the laptop send to more than its page says. Its pin does not change.
func (l laptopPeer) widen(allowed string) {
	l.Helper()
	node := l.in(laptop, "wg", "show", laptopDevice, "peers")
	l.in(laptop, "wg", "set", laptopDevice, "peer", strings.TrimSpace(node), "allowed-ips", allowed)
	for p := range strings.SplitSeq(allowed, ",") {
		l.in(laptop, "ip", "route", "replace", p, "dev", laptopDevice, "src", laptopAddr)
	}
}

// pin replaces the laptop's pin.
func (l laptopPeer) pin(addrs string, flags ...string) {
	l.Helper()
	l.must(exec.Command(filepath.Join(l.bin, "strait"), append([]string{"peer", "add", "laptop", "--public-key", l.public,
		"--range", addrs, "--file", l.file}, flags...)...))
	// In force once the daemon says so: what is refused must not be refused by the pin before.
	testutil.Eventually(l, patience, func() error {
		var list struct {
			Items []struct{ Range, To []string }
		}
		if err := json.Unmarshal([]byte(l.strait(l.entry, "peer", "list", "-o", "json")), &list); err != nil {
			return err
		}
		var to []string
		for i, f := range flags {
			if f == "--to" {
				to = append(to, flags[i+1])
			}
		}
		if len(list.Items) != 1 || !slices.Equal(list.Items[0].Range, []string{addrs}) || !slices.Equal(list.Items[0].To, to) {
			return fmt.Errorf("strait peer list: %+v, want %s to %q", list.Items, addrs, to)
		}
		return nil
	})
}

// reaches calls from the laptop's own address. What answers may need some time until it does.
func (l laptopPeer) reaches(is bool, addrs ...string) {
	l.Helper()
	if is {
		for _, a := range addrs {
			testutil.Eventually(l, patience, func() error {
				_, err := call(laptopAddr, a, 2*time.Second)
				return err
			})
		}
		return
	}
	var wg sync.WaitGroup // each takes as long as its timeout
	for _, a := range addrs {
		wg.Go(func() {
			if answer, err := call(laptopAddr, a, time.Second); err == nil {
				l.Errorf("the laptop reaches %s, which its pin does not have: %s", a, answer)
			}
		})
	}
	wg.Wait()
}

// says waits until a problem of the entry node has all the words.
func (l laptopPeer) says(words ...string) {
	l.Helper()
	testutil.Eventually(l, patience, func() error {
		out, _ := exec.Command(filepath.Join(l.bin, "strait"), "--socket", filepath.Join(demoFolder(l.bin), l.entry, "run", "strait.sock"),
			"status").CombinedOutput() // it exits with code 1 if there are problems
		for _, w := range words {
			if !strings.Contains(string(out), w) {
				return fmt.Errorf("strait status does not say %q:\n%s", w, out)
			}
		}
		return nil
	})
}
