package kubelab

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"strait.io/strait/install/image/oci"
)

// buildImages builds the lab's own images. All but pause are built once per set of programs.
func (l *Lab) buildImages(ctx context.Context) error {
	if l.state.Nodes == 0 {
		return nil
	}
	pause := oci.Image{Names: []string{"localhost/pause:1"}, Entrypoint: []string{"/init"}}
	if err := l.buildImage(l.path("images", "pause.tar"), pause, map[string]string{l.path("bin", "init"): "/init"}); err != nil {
		return err
	}
	if err := os.MkdirAll(l.program("images"), 0o755); err != nil {
		return fmt.Errorf("make folder of images: %w", err)
	}
	for name, cmd := range map[string][]string{"coredns": nil, "agnhost": {"pause"}} {
		image := oci.Image{Names: []string{"localhost/" + name + ":1"}, Entrypoint: []string{"/" + name}, Cmd: cmd}
		if err := l.cachedImage(name, image, map[string]string{l.program(name): "/" + name}); err != nil {
			return err
		}
	}
	files, err := shellFiles(ctx)
	if err != nil {
		return err
	}
	return l.cachedImage("shell", oci.Image{Cmd: []string{"/bin/sh"}, Names: []string{
		// The MCS conformance suite uses the second and third name.
		"localhost/shell:1", "docker.io/alpine/socat:1.7.4.4", "docker.io/nicolaka/netshoot:v0.15",
	}}, files, applets...)
}

// cachedImage builds an image next to the programs unless it exists there, and links to it.
func (l *Lab) cachedImage(name string, image oci.Image, files map[string]string, applets ...string) error {
	version, err := versionOf(files, applets)
	if err != nil {
		return err
	}
	cached := l.program(filepath.Join("images", name+"-"+version+".tar"))
	if _, err := os.Stat(cached); errors.Is(err, os.ErrNotExist) {
		if err := l.buildImage(cached, image, files, applets...); err != nil {
			return err
		}
	}
	if err := os.Symlink(cached, l.path("images", name+".tar")); err != nil {
		return fmt.Errorf("link image: %w", err)
	}
	return nil
}

// versionOf returns a hash that changes when an image's files or applets change.
func versionOf(files map[string]string, applets []string) (string, error) {
	h := sha256.New()
	fmt.Fprintln(h, applets)
	for _, from := range slices.Sorted(maps.Keys(files)) {
		info, err := os.Stat(from)
		if err != nil {
			return "", fmt.Errorf("read a file of an image: %w", err)
		}
		fmt.Fprintln(h, from, files[from], info.Size(), info.ModTime().UnixNano())
	}
	return hex.EncodeToString(h.Sum(nil)[:6]), nil
}

// buildImage packs files into an image, with a link to busybox for each applet. files maps paths on
// this machine to paths in the image.
func (l *Lab) buildImage(file string, image oci.Image, files map[string]string, applets ...string) error {
	root, err := os.MkdirTemp(l.Dir, "image-")
	if err != nil {
		return fmt.Errorf("make folder for an image: %w", err)
	}
	defer os.RemoveAll(root)
	if err := os.Mkdir(filepath.Join(root, "tmp"), 0o777); err != nil {
		return fmt.Errorf("make folder for an image: %w", err)
	}
	for from, to := range files {
		if err := copyInto(root, from, to); err != nil {
			return err
		}
	}
	for _, name := range applets {
		if err := os.Symlink("busybox", filepath.Join(root, "bin", name)); err != nil {
			return fmt.Errorf("link applet: %w", err)
		}
	}
	image.Root, image.Arch = root, runtime.GOARCH
	_, err = oci.Write(file, image)
	return err
}

// Import loads an image file on every node, and on nodes that start later.
func (l *Lab) Import(ctx context.Context, file string) error {
	if !strings.HasSuffix(file, ".tar") {
		return fmt.Errorf("import %q: want an image as a .tar file", file)
	}
	// Nodes that start later load it from there.
	if err := copyInto(l.path("images"), file, filepath.Base(file)); err != nil {
		return fmt.Errorf("import image: %w", err)
	}
	all, ctx := errgroup.WithContext(ctx)
	for _, c := range l.Topology.Clusters {
		for _, n := range c.Nodes {
			all.Go(func() error { return l.importOn(ctx, n, l.path("images", filepath.Base(file))) })
		}
	}
	return all.Wait()
}

// importAll loads every image of the lab on one node, once containerd listens there.
func (l *Lab) importAll(ctx context.Context, n Node) error {
	images, err := filepath.Glob(l.path("images", "*.tar"))
	if err != nil {
		return fmt.Errorf("find images: %w", err)
	}
	err = await(ctx, readyWithin, fmt.Sprintf("containerd on %s; see %s", n.Name, l.path("log")), func() error {
		pid, err := l.pid(n)
		if err != nil {
			return err
		}
		conn, err := net.Dial("unix", filepath.Join("/proc", pid, "root", socket))
		if err != nil {
			return err
		}
		return conn.Close()
	})
	if err != nil {
		return err
	}
	for _, image := range images {
		if err := l.importOn(ctx, n, image); err != nil {
			return err
		}
	}
	return nil
}

func (l *Lab) importOn(ctx context.Context, n Node, image string) error {
	_, err := l.OnNode(ctx, n.Name, l.ctr("images", "import", image)...)
	if err != nil {
		return fmt.Errorf("import %s on %s: %w", filepath.Base(image), n.Name, err)
	}
	return nil
}
