package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"

	"strait.io/strait/test/vm/initrd"
	"strait.io/strait/test/vm/job"
)

const (
	module = "strait.io/strait/"
	// verifyPackage loads every program of every eBPF object, whichever package uses it.
	verifyPackage = module + "test/vm/verify"
	objectsDir    = "/objects"
	objectsEnv    = "STRAIT_VM_OBJECTS"
	testsDir      = "/tests"
)

// cargo is the part of the initramfs that is the same for every kernel. It comes second.
type cargo struct {
	archive []byte
	job     job.Job
}

// build builds the guest's init process, the test programs and the job.
func build(ctx context.Context, dir string, o options) (*cargo, error) {
	packages, err := kernelPackages(ctx, strings.Fields(o.packages))
	if err != nil {
		return nil, err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(2)
	group.Go(func() error {
		return goTool(ctx, "build", "-trimpath", "-ldflags=-s -w", "-o", filepath.Join(dir, "init"), "./test/vm/guest")
	})
	for _, p := range packages {
		group.Go(func() error {
			return goTool(ctx, "test", "-c", "-trimpath", "-ldflags=-s -w", "-o", binary(dir, p), p)
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return pack(dir, packages, o)
}

// kernelPackages lists the packages that have tests for the kernel. The verifier's comes first: if
// a program does not load, further tests are pointless.
func kernelPackages(ctx context.Context, patterns []string) ([]string, error) {
	args := []string{"list", "-f", `{{.ImportPath}} {{join .TestGoFiles " "}} {{join .XTestGoFiles " "}}`}
	c := exec.CommandContext(ctx, "go", append(args, patterns...)...)
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	var said bytes.Buffer
	c.Stderr = &said
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("go list %s: %w: %s", strings.Join(patterns, " "), err, said.String())
	}
	list := []string{verifyPackage}
	for line := range strings.Lines(string(out)) {
		if name, files, ok := strings.Cut(line, " "); ok && name != verifyPackage && strings.Contains(files, "_linux_test.go") {
			list = append(list, name)
		}
	}
	return list, nil
}

func goTool(ctx context.Context, args ...string) error {
	c := exec.CommandContext(ctx, "go", args...)
	c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

// name returns a package's path relative to the module.
func name(pkg string) string { return strings.TrimPrefix(pkg, module) }

func binary(dir, pkg string) string {
	return filepath.Join(dir, strings.ReplaceAll(name(pkg), "/", "-")+".test")
}

// pack puts the programs into an archive, each in a folder with its package's test data.
func pack(dir string, packages []string, o options) (*cargo, error) {
	var a initrd.Archive
	for _, d := range []string{"proc", "sys", "dev", "run", "tmp", "var", "etc", "bin"} {
		a.Dir(d)
	}
	a.Link("var/run", "/run") // where wireguard-go keeps its sockets
	a.File("etc/passwd", []byte("root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n"))
	a.File("etc/hosts", []byte("127.0.0.1 localhost\n::1 localhost\n"))
	if err := addFile(&a, filepath.Join(dir, "init"), "init"); err != nil {
		return nil, err
	}
	var j job.Job
	for _, p := range packages {
		at := path.Join(testsDir, name(p))
		if err := addFile(&a, binary(dir, p), at[1:]+"/run.test"); err != nil {
			return nil, err
		}
		if err := addTree(&a, filepath.Join(name(p), "testdata"), at[1:]+"/testdata"); err != nil {
			return nil, err
		}
		args := []string{"-test.v=test2json", "-test.count=1", "-test.timeout=" + (o.limit * 2 / 3).String(), "-test.short"}
		if o.only != "" {
			args = append(args, "-test.run="+o.only)
		}
		j.Programs = append(j.Programs, job.Program{
			Name: name(p), Path: at + "/run.test", Dir: at, Args: args, Env: []string{objectsEnv + "=" + objectsDir},
		})
	}
	for _, pattern := range []string{"datapath/*/*_bpfel.o", "datapath/*/*/*_bpfel.o"} {
		objects, err := filepath.Glob(pattern)
		if err != nil {
			return nil, err
		}
		for _, o := range objects {
			if err := addFile(&a, o, objectsDir[1:]+"/"+filepath.Base(o)); err != nil {
				return nil, err
			}
		}
	}
	text, err := j.Encode()
	if err != nil {
		return nil, err
	}
	a.File(job.File[1:], text)
	return &cargo{archive: a.Bytes(), job: j}, nil
}

func addFile(a *initrd.Archive, from, to string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	a.Program(to, b)
	return nil
}

// addTree adds a folder's files. A folder that does not exist is no error.
func addTree(a *initrd.Archive, from, to string) error {
	return filepath.WalkDir(from, func(p string, d os.DirEntry, err error) error {
		if os.IsNotExist(err) {
			return nil
		}
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(from, p)
		if err != nil {
			return err
		}
		return addFile(a, p, path.Join(to, filepath.ToSlash(rel)))
	})
}
