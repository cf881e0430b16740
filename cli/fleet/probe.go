package fleet

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"strait.io/strait/cli"
	"strait.io/strait/cli/connectivity"
	"strait.io/strait/cli/connectivity/agent"
)

// ProbeCommand is what the pods of strait connectivity test run. Users never need it, so help does not list it.
func ProbeCommand(a *cli.App) *cobra.Command {
	c := &cobra.Command{
		Use:    "probe",
		Short:  "Answer and make the calls of strait connectivity test, in its pods",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE:   func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var as string
	serve := &cobra.Command{
		Use:   "serve",
		Short: "Answer calls over TCP and UDP",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			id, ok := connectivity.ParseIdentity(as)
			if !ok {
				return cli.UsageError("--as %q: want CLUSTER/NODE/POD", as)
			}
			return agent.Serve(cmd.Context(), fmt.Sprintf(":%d", connectivity.PodPort), id)
		},
	}
	serve.Flags().StringVar(&as, "as", "", "this pod, `CLUSTER/NODE/POD`")
	wait := &cobra.Command{
		Use:   "wait",
		Short: "Do nothing until it is stopped",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			<-cmd.Context().Done()
			return nil
		},
	}
	run := &cobra.Command{
		Use:   "run",
		Short: "Make the calls that a JSON list on stdin has, and print their outcomes",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var calls []connectivity.Call
			// One value, not all of stdin: its end does not reach the pod by every API server.
			if err := json.NewDecoder(a.Stdin).Decode(&calls); err != nil {
				return cli.UsageError("read the calls: %v", err)
			}
			return json.NewEncoder(a.Stdout).Encode(agent.Run(cmd.Context(), calls))
		},
	}
	for _, sub := range []*cobra.Command{serve, wait, run} {
		sub.Hidden = true
		c.AddCommand(sub)
	}
	return c
}
