// Command bench measures the socket load balancer against a direct connection, against kube-proxy's
// rules and against Cilium's own balancer, and the daemon in a large Kubernetes cluster, in one
// run: `make bench`.
//
// Input is the machine and the environment (BENCH_QUICK, BENCH_JSON, BENCH_DOC, BENCH_KUBE,
// BENCH_PHASES). Output is a table, a JSON file of metrics and the table in docs/benchmarks.md,
// which also says what each metric means. It needs root. It works in its own network namespace,
// cgroup and bpffs, and removes them. It must use the load balancer as the daemon does: through the
// exported functions of datapath/socklb.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"

	"strait.io/strait/test/bench/scale"
)

// A bench consists of several processes of one binary. The outer process sets up and cleans up, the
// inner one measures, and balancers exist to be killed.
const (
	roleEnv      = "STRAIT_BENCH_ROLE"
	roleInner    = "inner"
	roleBalancer = "balancer"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, unix.SIGTERM)
	defer stop()
	if scale.IsInner() {
		return scale.Inner()
	}
	switch os.Getenv(roleEnv) {
	case roleInner:
		return measure()
	case roleBalancer:
		return balance(os.Stdin, os.Stdout)
	}
	return outer(ctx, optionsFromEnv())
}
