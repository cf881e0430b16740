package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"strait.io/strait/internal/fabric"
	"strait.io/strait/internal/testutil"
	"strait.io/strait/test/pages"
)

// patience is how long a busy machine may take until something has taken effect.
const patience = 20 * time.Second

// site is a demo that was left up, and a machine with plain WireGuard tools beside its clusters.
type site struct {
	*testing.T
	bin   string
	tools string // has wireguard-go, and the files of the page
}

// newSite leaves a demo up until the test ends.
func newSite(t *testing.T, nodes string) site {
	t.Helper()
	testutil.NeedRoot(t)
	testutil.NeedTun(t)
	for _, tool := range []string{"wg", "ip", "nft"} {
		if _, err := exec.LookPath(tool); err != nil {
			testutil.Missing(t, "needs "+tool+": run `make setup` as root")
		}
	}
	s := site{T: t, bin: binaries(t), tools: t.TempDir()}
	wantNoTraces(t, s.bin)
	build := exec.Command("go", "build", "-o", filepath.Join(s.tools, "wireguard-go"), "golang.zx2c4.com/wireguard")
	build.Dir = filepath.Dir(s.bin)
	s.must(build)
	t.Cleanup(func() {
		if err := demo(t, s.bin, "down").Run(); err != nil {
			t.Errorf("strait demo down: %v", err)
		}
	})
	if err := demo(t, s.bin, "up", "--clusters", "2", "--nodes", nodes).Run(); err != nil {
		t.Fatalf("strait demo up: %v", err)
	}
	return s
}

// must runs a command and returns what it prints.
func (s site) must(cmd *exec.Cmd) string {
	s.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		s.Fatalf("%s: %v\n%s%s", strings.Join(cmd.Args, " "), err, stdout.String(), stderr.String())
	}
	return stdout.String()
}

// strait asks the daemon of a node.
func (s site) strait(node string, args ...string) string {
	s.Helper()
	socket := filepath.Join(demoFolder(s.bin), node, "run", "strait.sock")
	return s.must(exec.Command(filepath.Join(s.bin, "strait"), append([]string{"--socket", socket}, args...)...))
}

// in runs a command in a network namespace.
func (s site) in(ns string, args ...string) string {
	s.Helper()
	return s.must(exec.Command("ip", append([]string{"netns", "exec", ns}, args...)...))
}

// device runs wireguard-go in a namespace until the test ends.
func (s site) device(ns, name string) {
	s.Helper()
	cmd := exec.Command("ip", "netns", "exec", ns, filepath.Join(s.tools, "wireguard-go"), "-f", name)
	if err := cmd.Start(); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		_ = cmd.Process.Kill() // an error means that it is dead already
		_ = cmd.Wait()
		os.Remove("/var/run/wireguard/" + name + ".sock")
	})
	testutil.Eventually(s, patience, func() error { return exec.Command("wg", "show", name).Run() })
}

// page are the blocks of the page for machines without strait, in order.
func (s site) page() (blocks []string) {
	s.Helper()
	all, err := pages.Load(os.DirFS(filepath.Dir(s.bin)))
	if err != nil {
		s.Fatal(err)
	}
	for _, b := range pages.Of(all, pages.Laptop) {
		blocks = append(blocks, b.Script())
	}
	if len(blocks) != 5 {
		s.Fatalf("%d blocks to execute, want 5: a node's configuration by hand, keys, pin, device, end", len(blocks))
	}
	return blocks
}

// on executes a block of the page in a network namespace, in the folder tools.
func (s site) on(ns, script string, env ...string) {
	s.Helper()
	cmd := exec.Command("ip", "netns", "exec", ns, "bash", "-e", "-u", "-o", "pipefail", "-c", script)
	cmd.Dir, cmd.Env = s.tools, append(append(os.Environ(), "PATH="+s.tools+":"+os.Getenv("PATH")), env...)
	s.must(cmd)
}

// tool puts a script before the programs of the same name that blocks of the page call.
func (s site) tool(name, script string) {
	s.Helper()
	if err := os.WriteFile(filepath.Join(s.tools, name), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		s.Fatal(err)
	}
}

// The laptop's namespace and device, and its addresses: in the underlay, and in the tunnel.
const (
	laptop, laptopDevice = "strait-laptop", "wglaptop"
	laptopAddr           = "10.99.0.2"
)

// plug makes the laptop's namespace, on a network of its own behind the core router.
func (s site) plug() {
	s.Helper()
	s.Cleanup(func() {
		_ = exec.Command("sh", "-c", "kill $(ip netns pids "+laptop+")").Run() // an error means that nothing runs there
		_ = exec.Command("ip", "netns", "del", laptop).Run()
	})
	s.must(exec.Command("ip", "netns", "add", laptop))
	s.must(exec.Command("ip", "link", "add", "laptop0", "netns", "strait-core", "type", "veth", "peer", "name", "eth0", "netns", laptop))
	s.in("strait-core", "ip", "addr", "add", "172.30.200.1/30", "dev", "laptop0")
	s.in("strait-core", "ip", "link", "set", "laptop0", "up")
	s.in(laptop, "ip", "addr", "add", "172.30.200.2/30", "dev", "eth0")
	s.in(laptop, "ip", "link", "set", "eth0", "up")
	s.in(laptop, "ip", "route", "add", "default", "via", "172.30.200.1")
}

// call connects from the laptop, from one of its addresses, and asks the demo's server who it is.
func call(from, to string, timeout time.Duration) (answer string, err error) {
	err = fabric.InsideNamed(laptop, func() error {
		d := net.Dialer{Timeout: timeout, LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
		c, err := d.Dial("tcp", to)
		if err != nil {
			return err
		}
		defer c.Close()
		if _, err := fmt.Fprint(c, "GET / HTTP/1.0\r\n\r\n"); err != nil {
			return err
		}
		text, err := io.ReadAll(io.LimitReader(c, 1<<16))
		answer = string(text)
		if len(text) > 0 {
			return nil
		}
		return errors.Join(err, fmt.Errorf("an empty answer"))
	})
	return answer, err
}
