package main

import (
	"os"
	"time"

	"github.com/spf13/cobra"

	"strait.io/strait/daemon"
	"strait.io/strait/daemon/lend"
)

// lendCommand is for the pods of the Deployment strait-leader, which lend the daemons of their nodes
// what it takes to lead the cluster. Users never need it, so help does not list it.
func lendCommand() *cobra.Command {
	var l lend.Lender
	var check bool
	c := &cobra.Command{
		Use:    "lend",
		Short:  "Lend this node's daemon what it needs to lead its cluster",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if l.Name, err = os.Hostname(); err != nil { // that of the pod
				return err
			}
			if check {
				return l.Check(time.Now())
			}
			l.Log = newLogger(daemon.LogConfig{})
			return l.Run(cmd.Context())
		},
	}
	c.Flags().StringVar(&l.Dir, "dir", "/run/strait/leader", "`directory` that the daemon looks at")
	c.Flags().StringVar(&l.Token, "token", "", "`file` with the token to lend")
	c.Flags().StringVar(&l.Root, "root", "", "`file` with the cluster's root key to lend, if it signs")
	c.Flags().BoolVar(&check, "check", false, "only say whether a process that lends the same does so now")
	c.MarkFlagsOneRequired("token", "check")
	return c
}
