// Command run boots each kernel in its own VM, runs the kernel tests there and prints the results:
// failures, skips with their reasons, instruction counts and a table, then the totals.
//
// Input is the checkout in the working directory (`make test-vm`) and the series named by -kernels.
// It exits 1 if a test failed, a VM did not finish, or a test was skipped that test/vm/skips.txt
// does not allow. No root is needed. It must not know any test.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"strait.io/strait/test/vm/kernels"
	"strait.io/strait/test/vm/result"
)

const allowFile = "test/vm/skips.txt"

// options are what the command line sets.
type options struct {
	kernels, packages, accel, only string
	side, cpus                     int
	limit                          time.Duration
	keep, instructions             string
}

func main() {
	var o options
	flag.StringVar(&o.kernels, "kernels", "5.10 6.1 6.12 newest", "series of kernels, in the order of the table")
	flag.StringVar(&o.packages, "packages", "./datapath/...", "packages whose kernel tests run, as patterns for go list")
	flag.StringVar(&o.accel, "accel", "tcg", "QEMU's accelerator; kvm is faster where it works, and hangs where it does not")
	flag.StringVar(&o.only, "run", "", "run only the tests that match this regular expression, as with -test.run")
	// A guest spends half of its time waiting for grace periods and timeouts: run two for each
	// processor.
	flag.IntVar(&o.side, "side", 2*runtime.NumCPU(), "number of VMs that run in parallel")
	flag.IntVar(&o.cpus, "cpus", 2, "processors of each VM; one processor does not test what a second one sees")
	flag.DurationVar(&o.limit, "limit", 40*time.Minute, "time limit for a VM; one that takes longer counts as hung; beside other work, one has taken 35 minutes")
	flag.StringVar(&o.keep, "keep", "", "folder for the output of each VM")
	flag.StringVar(&o.instructions, "instructions", "", "file for the table of instruction counts, written if the run succeeds")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ok, err := run(ctx, o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "test-vm:", err)
	}
	if !ok {
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) (ok bool, err error) {
	text, err := os.ReadFile(allowFile)
	if err != nil {
		return false, fmt.Errorf("%w; run `make test-vm` in the checkout", err)
	}
	allowed, err := result.ParseAllowed(string(text))
	if err != nil {
		return false, fmt.Errorf("%s: %w", allowFile, err)
	}
	if err := haveTools(); err != nil {
		return false, err
	}
	dir, err := os.MkdirTemp("", "strait-vm-")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(dir)
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{ReplaceAttr: noTime}))
	machines, err := machines(ctx, o, dir, log)
	if err != nil {
		return false, err
	}
	ok = result.Write(os.Stdout, machines, result.Rules{Allowed: allowed, Partial: o.only != ""})
	if ok && o.instructions != "" {
		err = os.WriteFile(o.instructions, []byte(result.Instructions(machines)), 0o644)
	}
	return ok, errors.Join(err, ctx.Err())
}

// machines prepares everything and runs a VM for each kernel.
func machines(ctx context.Context, o options, dir string, log *slog.Logger) ([]result.Machine, error) {
	cacheDir, err := kernels.DefaultDir()
	if err != nil {
		return nil, err
	}
	// Do both at the same time: fetching waits for the network, building needs the processor.
	var ks []kernels.Kernel
	var cargo *cargo
	prepare, prepareCtx := errgroup.WithContext(ctx)
	prepare.Go(func() (err error) {
		ks, err = kernels.Cache{Dir: cacheDir, Log: log}.Get(prepareCtx, strings.Fields(o.kernels))
		return err
	})
	prepare.Go(func() (err error) {
		cargo, err = build(prepareCtx, dir, o)
		return err
	})
	if err := prepare.Wait(); err != nil {
		return nil, err
	}
	if len(ks) == 0 {
		return nil, errors.New("no kernel to test: KERNELS is empty; name a series such as 6.1")
	}
	out := make([]result.Machine, len(ks))
	var group errgroup.Group
	group.SetLimit(o.side)
	for i, k := range ks {
		group.Go(func() error {
			vm := machine{kernel: k, cargo: cargo, dir: dir, options: o}
			out[i] = vm.run(ctx)
			log.Info("VM ended", "kernel", k.Version, "seconds", int(out[i].Seconds), "problem", out[i].Summary())
			return nil
		})
	}
	return out, group.Wait()
}

// haveTools returns an error that names the missing tools and how to install them.
func haveTools() error {
	var errs []error
	for _, name := range []string{qemu, "xz", "apt-get", "dpkg-deb"} {
		if _, err := exec.LookPath(name); err != nil {
			errs = append(errs, fmt.Errorf("%w: run `make setup` as root", err))
		}
	}
	return errors.Join(errs...)
}

func noTime(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}
