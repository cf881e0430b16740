package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"strait.io/strait/internal/fabric"
	"strait.io/strait/internal/testutil"
)

// The test binary is also what runs in the lab.
func TestMain(m *testing.M) {
	if len(os.Args) < 3 {
		os.Exit(m.Run())
	}
	var err error
	switch os.Args[1] {
	case "enter":
		err = Enter(os.Args[2], os.Args[3:])
	case "serve":
		err = serve(os.Args[2])
	case "chroot":
		err = inChroot(os.Args[2])
	case "call":
		err = call(os.Args[2])
	default:
		os.Exit(m.Run())
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// serve answers every connection with the address of its client.
func serve(addr string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	for {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		fmt.Fprint(conn, conn.RemoteAddr())
		conn.Close()
	}
}

func call(addr string) error {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	_, err = b.ReadFrom(conn)
	fmt.Print(b.String())
	return err
}

// build makes a lab and proves at the end of the test that nothing of it is left.
func build(t *testing.T, size Size) *Lab {
	t.Helper()
	testutil.NeedRoot(t)
	if names := leftovers(); len(names) > 0 {
		t.Skipf("a demo is up on this machine (%s): run `strait demo down`", names[0])
	}
	before := rootLinks(t)
	dir := filepath.Join(t.TempDir(), "demo")
	l, err := Build(context.Background(), Options{Size: size, Dir: dir, Enter: []string{os.Args[0], "enter"}})
	if errors.Is(err, ErrBusy) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	forget := testutil.AtInterrupt(func() { _ = l.TearDown(context.Background()) })
	t.Cleanup(func() {
		forget()
		if err := l.TearDown(context.Background()); err != nil {
			t.Error(err)
		}
		if names := leftovers(); len(names) > 0 {
			t.Errorf("namespaces are left: %v", names)
		}
		for _, path := range []string{dir, l.state.Cgroup} {
			if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s is left (%v)", path, err)
			}
		}
		if info, _ := os.ReadFile("/proc/self/mountinfo"); strings.Contains(string(info), dir) {
			t.Errorf("a mount is left in %s", dir)
		}
		if after := rootLinks(t); after != before {
			t.Errorf("links of the root network namespace: %s, before: %s", after, before)
		}
	})
	return l
}

func rootLinks(t *testing.T) string {
	t.Helper()
	links, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, l := range links {
		names = append(names, l.Name)
	}
	return strings.Join(names, " ")
}

// in runs this test binary in a place and returns what it prints.
func in(t *testing.T, l *Lab, place string, argv ...string) (string, error) {
	t.Helper()
	p, err := l.Find(place)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	proc, err := l.Start(Command{Place: p, Argv: argv, Names: true, Stdout: &out, Log: filepath.Join(l.Dir, "in.log")})
	if err != nil {
		t.Fatal(err)
	}
	<-proc.Done
	return out.String(), proc.Err
}

func start(t *testing.T, l *Lab, place, addr string) *Process {
	t.Helper()
	p, err := l.Find(place)
	if err != nil {
		t.Fatal(err)
	}
	proc, err := l.Start(Command{Place: p, Argv: []string{os.Args[0], "serve", addr}, Log: filepath.Join(l.Dir, "serve.log")})
	if err != nil {
		t.Fatal(err)
	}
	return proc
}

// eventually calls addr until the answer contains want.
func eventually(t *testing.T, l *Lab, place, addr, want string) {
	t.Helper()
	var got string
	var err error
	for range 50 {
		if got, err = in(t, l, place, os.Args[0], "call", addr); err == nil && strings.Contains(got, want) {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("call from %s to %s: %q, %v; want %q", place, addr, got, err, want)
}

func TestLab(t *testing.T) {
	l := build(t, Size{Clusters: 2, Nodes: 2})
	start(t, l, "us-east-1/serve", "10.1.1.10:80")
	start(t, l, "us-east-2/serve", "10.1.2.10:80")
	start(t, l, "us-west-1/serve", "10.2.1.10:80")
	start(t, l, "us-west-1", "172.31.2.1:80")

	t.Run("pods of a cluster reach each other, by their own addresses", func(t *testing.T) {
		eventually(t, l, "us-east-1/client", "10.1.1.10:80", "10.1.1.20:")
		eventually(t, l, "us-east-1/client", "10.1.2.10:80", "10.1.1.20:")
		eventually(t, l, "us-east-1", "10.1.2.10:80", "172.31.1.1:")
	})
	t.Run("nodes reach each other over the routed underlay", func(t *testing.T) {
		eventually(t, l, "us-east-1", "172.31.2.1:80", "172.31.1.1:")
	})
	t.Run("no route leads to pods of another cluster", func(t *testing.T) { noRoute(t, l) })
	t.Run("a cut parts clusters and no cluster", func(t *testing.T) {
		c := l.Clusters[1]
		if err := l.Cut(c); err != nil {
			t.Fatal(err)
		}
		if got, err := in(t, l, "us-east-1", os.Args[0], "call", "172.31.2.1:80"); err == nil {
			t.Errorf("call over the cut: %q, want an error", got)
		}
		eventually(t, l, "us-west-2/client", "10.2.1.10:80", "10.2.2.20:")
		if err := l.Heal(c); err != nil {
			t.Fatal(err)
		}
		eventually(t, l, "us-east-1", "172.31.2.1:80", "172.31.1.1:")
		eventually(t, l, "us-west-1", "172.31.2.1:80", "172.31.2.1:")
	})
	t.Run("a node dies and comes back", func(t *testing.T) { reboot(t, l) })
	t.Run("processes have the node's names, and no others have", func(t *testing.T) {
		got, err := in(t, l, "us-east-1/client", "cat", "/etc/resolv.conf")
		if want := "nameserver 10.1.1.1\nnameserver 10.1.2.1\n"; err != nil || !strings.HasPrefix(got, want) {
			t.Errorf("resolv.conf in the pod: %q, %v; want %q", got, err, want)
		}
		if host, _ := os.ReadFile("/etc/resolv.conf"); strings.Contains(string(host), "10.1.1.1\n") {
			t.Error("the machine's resolv.conf shows the pod's resolver")
		}
	})
	t.Run("processes are born in their cgroup", func(t *testing.T) {
		for place, want := range map[string]string{"us-west-2": "us-west-2/host", "us-west-2/serve": "us-west-2/pod-serve"} {
			if got, err := in(t, l, place, "cat", "/proc/self/cgroup"); err != nil || !strings.Contains(got, cgroupName+"/"+want+"\n") {
				t.Errorf("cgroup in %s: %q, %v; want %s", place, got, err, want)
			}
		}
	})
}

// noRoute proves that only a tunnel can carry pods' packets between clusters: a call from the node is
// refused at once, one from a pod gets nothing back, and no router has a route.
func noRoute(t *testing.T, l *Lab) {
	if got, err := in(t, l, "us-east-1", os.Args[0], "call", "10.2.1.10:80"); err == nil || !strings.Contains(got, "network is unreachable") {
		t.Errorf("call from a node to a pod of another cluster: %q, %v; want network is unreachable", got, err)
	}
	if got, err := in(t, l, "us-east-1/client", os.Args[0], "call", "10.2.1.10:80"); err == nil {
		t.Errorf("call from a pod to a pod of another cluster: %q, want no answer", got)
	}
	for ns, pods := range map[string]string{core: "", l.Clusters[0].routerNS(): "10.1.", "strait-us-east-1": "10.1.1."} {
		err := fabric.WithHandle(ns, func(h *netlink.Handle) error {
			routes, err := h.RouteList(nil, netlink.FAMILY_V4)
			for _, r := range routes {
				if dst := r.Dst.String(); strings.HasPrefix(dst, "10.") && (pods == "" || !strings.HasPrefix(dst, pods)) {
					t.Errorf("%s has a route to %s", ns, dst)
				}
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

func reboot(t *testing.T, l *Lab) {
	n := l.Clusters[0].Nodes[1]
	victim := start(t, l, "us-east-2/client", "10.1.2.20:80")
	if err := os.WriteFile(filepath.Join(l.NodeDir(n.Name), "state", "x"), []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := l.PowerOff(context.Background(), n); err != nil {
		t.Fatal(err)
	}
	select {
	case <-victim.Done:
	case <-time.After(time.Second):
		t.Error("a process of the node outlives it")
	}
	if got, err := in(t, l, "us-east-1", os.Args[0], "call", "172.31.1.2:80"); err == nil || strings.Contains(got, "refused") {
		t.Errorf("call to a dead node: %q, %v; want silence", got, err)
	}
	if err := l.Remove(n); err != nil {
		t.Fatal(err)
	}
	if err := l.AddNode(l.Clusters[0], n); err != nil {
		t.Fatal(err)
	}
	start(t, l, "us-east-2/serve", "10.1.2.10:80")
	eventually(t, l, "us-east-1/client", "10.1.2.10:80", "10.1.1.20:")
	if _, err := os.Stat(filepath.Join(l.NodeDir(n.Name), "state", "x")); err != nil {
		t.Errorf("the node's disk did not survive: %v", err)
	}
}

// A lab is refused while another is up, and cleared away when its builder was killed.
func TestOneLabAtATime(t *testing.T) {
	l := build(t, Size{Clusters: 2, Nodes: 1})
	other := Options{Size: Size{Clusters: 2, Nodes: 1}, Dir: filepath.Join(t.TempDir(), "other")}
	if _, err := Build(context.Background(), other); !errors.Is(err, ErrBusy) {
		t.Errorf("Build in another directory: error %v, want ErrBusy", err)
	}
	same := Options{Size: Size{Clusters: 2, Nodes: 1}, Dir: l.Dir}
	if _, err := Build(context.Background(), same); !errors.Is(err, ErrBusy) {
		t.Errorf("Build in the same directory: error %v, want ErrBusy", err)
	}
	if err := l.lock.Close(); err != nil { // as if the builder had been killed
		t.Fatal(err)
	}
	l.lock = nil
	if _, err := Build(context.Background(), other); err == nil || !strings.Contains(err.Error(), "strait demo down") {
		t.Errorf("Build in another directory after a kill: error %v, want the advice to run `strait demo down`", err)
	}
	if _, err := os.Stat(other.Dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a refused Build left %s (%v)", other.Dir, err)
	}
	again, err := Build(context.Background(), same)
	if err != nil {
		t.Fatalf("Build after a kill: %v", err)
	}
	if err := again.Keep(); err != nil {
		t.Fatal(err)
	}
	if err := again.lock.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Build(context.Background(), same); err == nil || !strings.Contains(err.Error(), "--keep") {
		t.Errorf("Build over a kept lab: error %v, want a refusal that names --keep", err)
	}
	if n, err := RemoveByName(context.Background(), l.Dir); err != nil || n == 0 {
		t.Errorf("RemoveByName = %d, %v; want all namespaces gone", n, err)
	}
}

// A builder that is stopped leaves nothing.
func TestBuildInterrupted(t *testing.T) {
	testutil.NeedRoot(t)
	if names := leftovers(); len(names) > 0 {
		t.Skipf("a demo is up on this machine (%s): run `strait demo down`", names[0])
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	dir := filepath.Join(t.TempDir(), "demo")
	_, err := Build(ctx, Options{Size: Size{Clusters: 2, Nodes: 1}, Dir: dir})
	if errors.Is(err, ErrBusy) {
		t.Skip(err)
	}
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Build = %v, want the cancellation", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) || len(leftovers()) > 0 {
		t.Errorf("left: %s (%v), %v", dir, err, leftovers())
	}
}

// A directory that holds something else is never taken, and so never removed.
func TestForeignDirectory(t *testing.T) {
	testutil.NeedRoot(t)
	dir := t.TempDir()
	precious := filepath.Join(dir, "precious")
	if err := os.WriteFile(precious, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := Build(context.Background(), Options{Size: Size{Clusters: 2, Nodes: 1}, Dir: dir})
	if err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("Build in a directory with something in it: error %v, want a refusal", err)
	}
	if _, err := os.Stat(precious); err != nil {
		t.Error(err)
	}
}

// What a failed demo leaves is logs, and the next one takes their place without touching what is up.
func TestKeepLogs(t *testing.T) {
	l := build(t, Size{Clusters: 2, Nodes: 1})
	if err := os.WriteFile(filepath.Join(l.NodeDir("us-east-1"), "x.log"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := l.TearDownKeepLogs(context.Background()); err != nil {
		t.Fatal(err)
	}
	if names := leftovers(); len(names) > 0 {
		t.Errorf("namespaces are left: %v", names)
	}
	var files []string
	for _, pattern := range []string{"*", "*/*", "*/*/*"} {
		found, _ := filepath.Glob(filepath.Join(l.Dir, pattern))
		files = append(files, found...)
	}
	if want := []string{filepath.Join(l.Dir, "lab.json"), filepath.Join(l.Dir, "us-east-1"), filepath.Join(l.Dir, "us-east-1", "x.log")}; !slices.Equal(files, want) {
		t.Errorf("files left: %v, want %v", files, want)
	}
}
