package kubelab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// shellPrograms maps this machine's programs to their paths in the shell image, where they have
// their usual names.
var shellPrograms = map[string]string{
	// Not busybox's own sh: it prefers busybox's applets to these programs.
	"dash": "/bin/sh", "busybox": "/bin/busybox", "curl": "/usr/bin/curl", "dig": "/usr/bin/dig",
	"nslookup": "/usr/bin/nslookup", "nc.openbsd": "/usr/bin/nc", "socat": "/usr/bin/socat",
}

// applets are the programs that the shell image takes from busybox.
var applets = []string{
	"awk", "cat", "cp", "cut", "date", "echo", "env", "grep", "head", "hostname", "id", "ip", "kill", "ls", "mkdir",
	"mv", "netstat", "ping", "printf", "ps", "rm", "sed", "seq", "sleep", "sort", "tail", "tee", "test", "timeout",
	"touch", "tr", "true", "uniq", "wc", "wget", "xargs",
}

// shellFiles returns the programs and the libraries that they load, as a map from this machine's
// paths to the image's.
func shellFiles(ctx context.Context) (map[string]string, error) {
	files := map[string]string{}
	for name, to := range shellPrograms {
		from, err := exec.LookPath(name)
		if err != nil {
			return nil, unfit("%w: run `make kube-lab`, which installs it on Debian and Ubuntu", err)
		}
		files[from] = to
		libraries, err := librariesOf(ctx, from)
		if err != nil {
			return nil, err
		}
		for _, lib := range libraries {
			files[lib] = lib
		}
	}
	return files, nil
}

// librariesOf asks the dynamic loader which libraries a program loads.
func librariesOf(ctx context.Context, program string) ([]string, error) {
	out, err := exec.CommandContext(ctx, "ldd", program).CombinedOutput()
	if err != nil {
		if strings.Contains(string(out), "not a dynamic executable") {
			return nil, nil
		}
		return nil, fmt.Errorf("list libraries of %s: %w: %s", program, err, out)
	}
	var libs []string
	for f := range strings.FieldsSeq(string(out)) {
		if strings.HasPrefix(f, "/") {
			libs = append(libs, f)
		}
	}
	return libs, nil
}

// copyInto copies a file to a path below root. It follows symbolic links.
func copyInto(root, from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return fmt.Errorf("copy: %w", err)
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return fmt.Errorf("copy: %w", err)
	}
	target := filepath.Join(root, to)
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return fmt.Errorf("copy: %w", err)
	}
	out, err := os.OpenFile(target, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, info.Mode().Perm())
	if err != nil {
		return fmt.Errorf("copy: %w", err)
	}
	_, err = io.Copy(out, in)
	if err := errors.Join(err, out.Close()); err != nil {
		return fmt.Errorf("copy %s: %w", from, err)
	}
	return nil
}
