package fleet

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"strait.io/strait/cli"
	"strait.io/strait/cli/connectivity"
	"strait.io/strait/cli/connectivity/agent"
)

// ProbeCommand is what the pods of strait connectivity test run. Users never need it, so help does
// not list it.
func ProbeCommand(a *cli.App) *cobra.Command {
	c := probe("probe", "Answer and make the calls of strait connectivity test, in its pods",
		func(cmd *cobra.Command) error { return cmd.Help() })
	var as string
	serve := probe("serve", "Answer calls over TCP and UDP", func(cmd *cobra.Command) error {
		id, ok := connectivity.ParseIdentity(as)
		if !ok {
			return cli.UsageError("--as %q: want CLUSTER/NODE/POD", as)
		}
		return agent.Serve(cmd.Context(), fmt.Sprintf(":%d", connectivity.PodPort), id)
	})
	serve.Flags().StringVar(&as, "as", "", "this pod, `CLUSTER/NODE/POD`")
	wait := probe("wait", "Do nothing until it is stopped", func(cmd *cobra.Command) error {
		<-cmd.Context().Done()
		return nil
	})
	run := probe("run", "Make the calls that stdin has as JSON, and print their outcomes", func(cmd *cobra.Command) error {
		var calls []connectivity.Call
		// One value, not all of stdin: its end does not reach the pod by every API server.
		if err := json.NewDecoder(a.Stdin).Decode(&calls); err != nil {
			return cli.UsageError("read the calls: %v", err)
		}
		return json.NewEncoder(a.Stdout).Encode(agent.Run(cmd.Context(), calls))
	})
	measure := probe("measure", "Measure what stdin asks for as JSON, and print it", func(cmd *cobra.Command) error {
		var m connectivity.Measure
		if err := json.NewDecoder(a.Stdin).Decode(&m); err != nil {
			return cli.UsageError("read what to measure: %v", err)
		}
		if len(m.Direct) == 0 {
			return cli.UsageError("direct: want at least one address")
		}
		return json.NewEncoder(a.Stdout).Encode(agent.MeasureAll(cmd.Context(), m))
	})
	c.AddCommand(serve, wait, run, measure)
	return c
}

// probe is a command for pods.
func probe(use, short string, do func(*cobra.Command) error) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return do(cmd) }}
}
