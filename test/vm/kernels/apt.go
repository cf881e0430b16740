package kernels

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const (
	metaPackage = "linux-image-cloud-amd64"
	keyring     = "/usr/share/keyrings/debian-archive-keyring.gpg"
)

// apt is a private state directory for Debian's package manager.
type apt struct{ dir string }

func (a apt) path(name string) string { return filepath.Join(a.dir, name) }

// stamp returns the file whose modification time is the age of the package lists.
func (a apt) stamp() string { return a.path("updated") }

// update sets up the state directory and downloads the package lists.
func (a apt) update(ctx context.Context) error {
	for _, d := range []string{"state/lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(a.path(d), 0o755); err != nil {
			return err
		}
	}
	if _, err := os.Stat(keyring); err != nil {
		return fmt.Errorf("%w: install the package debian-archive-keyring", err)
	}
	repos, err := machineRepositories(ctx)
	if err != nil {
		return err
	}
	conf := fmt.Sprintf(`Dir::State "%s"; Dir::State::status "%s"; Dir::Cache "%s"; Dir::Etc::sourcelist "%s";
Dir::Etc::sourceparts "-"; Acquire::Languages "none"; APT::Sandbox::User "root"; Acquire::Retries "3";
`, a.path("state"), a.path("status"), a.path("cache"), a.path("sources.list"))
	for name, text := range map[string]string{"sources.list": sources(repos, keyring), "apt.conf": conf, "status": ""} {
		if err := os.WriteFile(a.path(name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	// If the mirror has dropped a suite, apt-get update fails, but the other suites can still be
	// used.
	_, err = a.run(ctx, "", "apt-get", "-q", "update")
	if offered, _ := a.metaPackages(ctx); len(offered) == 0 {
		return errors.Join(errors.New("the mirror has no package "+metaPackage), err)
	}
	return os.WriteFile(a.stamp(), nil, 0o644)
}

// machineRepositories asks the system's apt which Debian mirrors it uses.
func machineRepositories(ctx context.Context) ([]repository, error) {
	out, err := output(exec.CommandContext(ctx, "apt-get", "indextargets",
		"--format", "$(REPO_URI)|$(ORIGIN)|$(LABEL)", "Created-By: Packages"))
	if err != nil {
		return nil, err
	}
	repos := parseTargets(out)
	if len(repos) == 0 {
		return nil, errors.New("apt on this machine knows no Debian mirror: on Debian run apt-get update; " +
			"elsewhere copy the folder of kernels from a Debian machine and set STRAIT_VM_CACHE to it")
	}
	return repos, nil
}

func (a apt) metaPackages(ctx context.Context) ([]pkg, error) {
	out, err := a.run(ctx, "", "apt-cache", "madison", metaPackage)
	return parseMadison(out), err
}

// unpack downloads the packages of a kernel into dir and unpacks them there.
func (a apt) unpack(ctx context.Context, p pkg, dir string) error {
	show, err := a.run(ctx, "", "apt-cache", "show", metaPackage+"="+p.version)
	if err != nil {
		return err
	}
	release, ok := releaseOf(show)
	if !ok {
		return fmt.Errorf("package %s=%s depends on no linux-image package", metaPackage, p.version)
	}
	show, err = a.run(ctx, "", "apt-cache", "show", "linux-image-"+release)
	if err != nil {
		return err
	}
	names := parts(release, show)
	if _, err := a.run(ctx, dir, "apt-get", append([]string{"-q", "download"}, names...)...); err != nil {
		return err
	}
	debs, err := filepath.Glob(filepath.Join(dir, "*.deb"))
	if err != nil {
		return err
	}
	if len(debs) != len(names) {
		return fmt.Errorf("apt-get download %s: got %d files, want %d", strings.Join(names, " "), len(debs), len(names))
	}
	for _, deb := range debs {
		if _, err := a.run(ctx, dir, "dpkg-deb", "-x", deb, dir); err != nil {
			return err
		}
		if err := os.Remove(deb); err != nil {
			return err
		}
	}
	return nil
}

func (a apt) run(ctx context.Context, dir, name string, args ...string) (string, error) {
	c := exec.CommandContext(ctx, name, args...)
	c.Dir = dir
	c.Env = append(os.Environ(), "APT_CONFIG="+a.path("apt.conf"), "LC_ALL=C")
	return output(c)
}

// output runs a command and returns its stdout. The error includes its stderr.
func output(c *exec.Cmd) (string, error) {
	var out, said bytes.Buffer
	c.Stdout, c.Stderr = &out, &said
	if err := c.Run(); err != nil {
		return out.String(), fmt.Errorf("%s: %w: %s", strings.Join(c.Args, " "), err, strings.TrimSpace(said.String()))
	}
	return out.String(), nil
}
