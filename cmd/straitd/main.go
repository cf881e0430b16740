// Command straitd is strait's node daemon. It reads flags and a config file and hands them to
// package daemon; it decides nothing.
package main

import (
	"context"
	"encoding"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/spf13/cobra"

	"strait.io/strait/daemon"
)

// version and revision are set by the linker.
var (
	version  = "dev"
	revision string
)

// gcPercent lets the heap grow by a quarter between two collections, not to twice its size. The
// daemon shares its node with other programs, and allocates little once it has read everything.
const gcPercent = 25

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	limitMemory()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := command().ExecuteContext(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "straitd: %v\n", err)
		stop()
		os.Exit(1)
	}
}

// memoryShare is the share of the cgroup's memory limit that the Go runtime tries to keep to. The
// rest is for the program itself and the kernel's maps, which count against the limit too.
const memoryShare = 0.8

// limitMemory makes the runtime collect more often as memory nears the cgroup's limit, at which the
// kernel would kill the daemon. Without a cgroup limit, or with GOMEMLIMIT set, it changes nothing:
// if we chose a limit of our own, the daemon of a large clusterset would do nothing but collect.
func limitMemory() {
	_, _ = memlimit.SetGoMemLimitWithOpts(memlimit.WithRatio(memoryShare), memlimit.WithProvider(memlimit.FromCgroup))
}

// options are the flags of straitd itself. Those that are also settings override the config file.
type options struct {
	config, cluster, node, manifest, logLevel, logFormat string
	check                                                bool
}

func command() *cobra.Command {
	var o options
	c := &cobra.Command{
		Use:   "straitd",
		Short: "strait's node daemon: services of many clusters, served by the nearest pod",
		Long: `straitd runs on every node of a clusterset. It gossips this node's endpoints, keeps a WireGuard
mesh to the nodes of other clusters, and loads ClusterSetIP → backend mappings into eBPF maps.

What the kernel holds outlives the daemon: traffic continues while straitd is stopped, killed or
upgraded. "straitd cleanup" removes it.`,
		Example: `  straitd --config /etc/strait/strait.yaml
  straitd --config /etc/strait/strait.yaml --check-config`,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := o.read()
			if err != nil {
				return err
			}
			if o.check {
				return daemon.Check(cmd.Context(), cmd.OutOrStdout(), o.config, cfg)
			}
			d, err := daemon.New(cfg, daemon.Build{Version: version, Revision: revision}, newLogger(cfg.Log))
			if err != nil {
				return err
			}
			return d.Run(cmd.Context())
		},
	}
	f := c.PersistentFlags()
	f.StringVar(&o.config, "config", "/etc/strait/strait.yaml", "config `file`")
	f.StringVar(&o.cluster, "cluster", "", "this cluster's `name`; overrides cluster in the config")
	f.StringVar(&o.node, "node", "", "this node's `name`; overrides node in the config")
	f.StringVar(&o.manifest, "manifest", "", "`directory` of manifests; overrides source in the config")
	f.StringVar(&o.logLevel, "log-level", "", "debug, info, warn or error; overrides log.`level` in the config")
	f.StringVar(&o.logFormat, "log-format", "", "text or json; overrides log.`format` in the config")
	c.Flags().BoolVar(&o.check, "check-config", false, "report every mistake in the config and in what it refers to, and exit")
	c.AddCommand(cleanupCommand(&o), tunnelCommand(), lendCommand(), viewCommand(), mountCommand(), preflightCommand(&o), versionCommand())
	return c
}

// read returns the config of the file with the flags' overrides, validated.
func (o options) read() (daemon.Config, error) {
	return daemon.ReadConfig(o.config, func(c *daemon.Config) error {
		for _, x := range []struct {
			flag string
			to   *string
		}{
			{o.cluster, &c.Cluster}, {o.node, &c.Node}, {o.manifest, &c.Source.Manifest},
		} {
			if x.flag != "" {
				*x.to = x.flag
			}
		}
		if o.manifest != "" {
			c.Source.Kubernetes = nil // the flag decides the source, whatever the file says
		}
		return errors.Join(decode("log-level", o.logLevel, &c.Log.Level), decode("log-format", o.logFormat, &c.Log.Format))
	})
}

// decode sets a field to the value of its flag, if the flag was given.
func decode(flag, text string, to encoding.TextUnmarshaler) error {
	if text == "" {
		return nil
	}
	if err := to.UnmarshalText([]byte(text)); err != nil {
		return fmt.Errorf("--%s: %w", flag, err)
	}
	return nil
}

func newLogger(c daemon.LogConfig) *slog.Logger {
	opts := &slog.HandlerOptions{Level: c.Level.Level}
	if c.Format == daemon.LogJSON {
		return slog.New(slog.NewJSONHandler(os.Stderr, opts))
	}
	return slog.New(slog.NewTextHandler(os.Stderr, opts))
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		Run:   func(cmd *cobra.Command, _ []string) { fmt.Fprintln(cmd.OutOrStdout(), "straitd", version) },
	}
}
