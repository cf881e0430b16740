package kubelab

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"strait.io/strait/internal/fabric"
)

// Listen listens at a free port of a cluster's gateway, which all nodes and Bare reach.
func (l *Lab) Listen(cluster string) (listener net.Listener, err error) {
	c, err := l.Topology.Cluster(cluster)
	if err != nil {
		return nil, err
	}
	err = fabric.InsideNamed(l.netns(fabricName), func() (err error) {
		listener, err = net.Listen("tcp", net.JoinHostPort(c.Gateway.String(), "0"))
		return err
	})
	return listener, err
}

// certsDir is where containerd on each node looks for what it must know of registries.
const certsDir = "/run/containerd/certs.d"

// AllowHTTP lets all nodes pull from a registry without TLS, until they end.
func (l *Lab) AllowHTTP(ctx context.Context, registry string) error {
	dir := filepath.Join(certsDir, registry)
	text := fmt.Sprintf("mkdir -p %[1]s && echo 'server = \"http://%[2]s\"' >%[1]s/hosts.toml", dir, registry)
	for _, c := range l.Topology.Clusters {
		for _, n := range c.Nodes {
			if _, err := l.OnNode(ctx, n.Name, "sh", "-c", text); err != nil {
				return err
			}
		}
	}
	return nil
}

// WriteBareKubeconfig writes a kubeconfig with all contexts, for Bare.
func (l *Lab) WriteBareKubeconfig(file string) error {
	var k kubeconfig
	for i := range l.Topology.Clusters {
		c := &l.Topology.Clusters[i]
		if err := k.add(l, c, "admin", "https://"+c.server().String()); err != nil {
			return err
		}
	}
	return k.write(file)
}

// Bare runs a script on a machine beside the clusters that has nothing but the files of a folder:
// its /bin/sh runs it, in /root. It returns what the script printed.
func (l *Lab) Bare(ctx context.Context, folder, script string) (string, error) {
	cmd := exec.CommandContext(ctx, "/bin/sh", "-euc", "mount -t proc proc /proc\n"+script)
	cmd.Dir, cmd.Env = "/root", []string{"PATH=/bin", "HOME=/root"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: folder, Unshareflags: syscall.CLONE_NEWNS}
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := fabric.InsideNamed(l.netns(fabricName), cmd.Start); err != nil {
		return "", fmt.Errorf("start a shell in %s: %w", folder, err)
	}
	err := cmd.Wait()
	return out.String(), err
}

// MakeBare fills a folder for Bare with a shell, the tools that each Debian has, and more programs
// by their names, which must be static.
func MakeBare(folder string, programs map[string]string) error {
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		return unfit("%w: run `make kube-lab`, which installs it on Debian and Ubuntu", err)
	}
	for _, dir := range []string{"bin", "dev", "proc", "root", "tmp"} {
		if err := os.MkdirAll(filepath.Join(folder, dir), 0o755); err != nil {
			return err
		}
	}
	if err := copyInto(folder, busybox, "/bin/busybox"); err != nil {
		return err
	}
	for _, name := range []string{"sh", "base64", "cat", "head", "mount", "sleep"} {
		if err := os.Symlink("busybox", filepath.Join(folder, "bin", name)); err != nil {
			return err
		}
	}
	for name, from := range programs {
		if err := copyInto(folder, from, "/bin/"+name); err != nil {
			return err
		}
	}
	// As the kernel numbers them: 1:3, 1:9.
	for name, minor := range map[string]int{"null": 3, "urandom": 9} {
		if err := syscall.Mknod(filepath.Join(folder, "dev", name), syscall.S_IFCHR|0o666, 1<<8|minor); err != nil {
			return fmt.Errorf("make /dev/%s: %w", name, err)
		}
	}
	return os.Symlink("/proc/self/fd/0", filepath.Join(folder, "dev/stdin"))
}
