package main

import (
	"github.com/spf13/cobra"

	"strait.io/strait/daemon"
	"strait.io/strait/daemon/api/relay"
)

// viewCommand is for the pods of the Deployment strait-view, through which people who have no access to nodes ask
// the daemons. Users never need it, so help does not list it.
func viewCommand() *cobra.Command {
	var c relay.Config
	command := &cobra.Command{
		Use:    "view",
		Short:  "Pass on the answers of this node's daemon to clients that have a token",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c.Log = newLogger(daemon.LogConfig{})
			return relay.Run(cmd.Context(), c)
		},
	}
	f := command.Flags()
	f.StringVar(&c.Listen, "listen", ":8443", "`address` and port for HTTPS")
	f.StringVar(&c.Socket, "socket", "/run/strait/view/strait.sock", "the daemon's `socket`")
	f.StringVar(&c.Token, "token", "", "`file` with the token that clients must send")
	_ = command.MarkFlagRequired("token")
	return command
}
