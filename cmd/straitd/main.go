// Command straitd is strait's node daemon. It reads flags and a config file and hands them to package
// daemon; it decides nothing.
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
	"time"

	"github.com/spf13/cobra"

	"strait.io/strait/daemon"
)

// version is set by the linker.
var version = "dev"

// gcPercent lets the heap grow by a quarter between two collections, not to twice its size: the daemon shares its node with
// others, and allocates little once it has read everything.
const gcPercent = 25

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := command().ExecuteContext(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "straitd: %v\n", err)
		stop()
		os.Exit(1)
	}
}

// giveBack returns memory that is not in use to the node, once a minute. Go's runtime does it too, but slowly: of a large
// cluster a seventh of the daemon's memory was what it had needed for its last burst of work. It costs one collection.
func giveBack(ctx context.Context) {
	ticker := time.NewTicker(time.Minute)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			debug.FreeOSMemory()
		}
	}
}

// options are the flags that straitd itself takes; those that a config file also has override it.
type options struct {
	config, cluster, node, manifest, logLevel, logFormat string
	check                                                bool
}

func command() *cobra.Command {
	var o options
	c := &cobra.Command{
		Use:   "straitd",
		Short: "strait's node daemon: services of many clusters, answered by the nearest pod",
		Long: `straitd runs on every node of a clusterset. It gossips this node's endpoints, keeps a WireGuard
mesh to the nodes of other clusters, and loads ClusterSetIP → backend mappings into eBPF maps.

What the kernel holds outlives the daemon: traffic goes on while straitd is stopped, killed or
upgraded. "straitd cleanup" removes every trace.`,
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
			d, err := daemon.New(cfg, version, newLogger(cfg.Log))
			if err != nil {
				return err
			}
			go giveBack(cmd.Context())
			return d.Run(cmd.Context())
		},
	}
	f := c.PersistentFlags()
	f.StringVar(&o.config, "config", "/etc/strait/strait.yaml", "the config file")
	f.StringVar(&o.cluster, "cluster", "", "override cluster")
	f.StringVar(&o.node, "node", "", "override node")
	f.StringVar(&o.manifest, "manifest", "", "override source.manifest")
	f.StringVar(&o.logLevel, "log-level", "", "override log.level: debug, info, warn or error")
	f.StringVar(&o.logFormat, "log-format", "", "override log.format: text or json")
	c.Flags().BoolVar(&o.check, "check-config", false, "report every mistake in the config and in what it names, and exit")
	c.AddCommand(cleanupCommand(&o), tunnelCommand(), mountCommand(), versionCommand())
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
			c.Source.Kubernetes = nil // the flag says where from, whatever the file does
		}
		return errors.Join(decode("log-level", o.logLevel, &c.Log.Level), decode("log-format", o.logFormat, &c.Log.Format))
	})
}

// decode sets a field to what its flag says, if it was given.
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
