package main

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/client"
)

// version is set by the linker (-X main.version=…); if empty, the Go toolchain's stamp is used.
var version string

// versionAnswer is the data of strait version.
type versionAnswer struct {
	api.Meta
	Client clientVersion `json:"client"`
	// Daemon is absent when it cannot be asked; DaemonError is why.
	Daemon      string `json:"daemon,omitempty"`
	DaemonError string `json:"daemonError,omitempty"`
}

type clientVersion struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "version",
		Short:             "Print the versions of strait and straitd",
		Long:              "Print the version of this program and, if it answers, of straitd on this node.",
		Example:           "  strait version\n  strait version -o json",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			answer := versionAnswer{Meta: api.Meta{APIVersion: api.APIVersion, Kind: "Version"}, Client: thisVersion()}
			status, err := ask(cmd.Context(), a, func(c *client.Client, ctx context.Context) (*api.Status, error) {
				ctx, cancel := context.WithTimeout(ctx, completionTimeout)
				defer cancel()
				return c.Status(ctx)
			})
			if err == nil {
				answer.Daemon = status.Version
			} else {
				answer.DaemonError = err.Error()
			}
			if done, err := a.data(answer); done {
				return err
			}
			a.printVersion(answer, err)
			return nil
		},
	}
}

func (a *app) printVersion(v versionAnswer, err error) {
	p := a.printer()
	p.line("strait   %s (%s, %s %s)", v.Client.Version, cmp.Or(v.Client.Revision, "no revision"), v.Client.Go,
		v.Client.Platform)
	var failure *api.Failure
	switch {
	case err == nil:
		p.line("straitd  %s", v.Daemon)
	case errors.As(err, &failure):
		p.line("straitd  %s", api.None)
		a.hint("%s", clean(failure.Message))
	}
}

func thisVersion() clientVersion {
	v := clientVersion{Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		v.Version = cmp.Or(v.Version, "unknown")
		return v
	}
	v.Version = cmp.Or(v.Version, info.Main.Version, "unknown")
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			v.Revision = s.Value
		}
	}
	return v
}
