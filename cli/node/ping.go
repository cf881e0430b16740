package node

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"strait.io/strait/cli"
	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/client"
)

const pingLong = `Ask a node, a pod or a service for an answer, and compare the ways there. The daemon opens TCP
connections to the node's gossip port, sends echo requests inside the tunnel, small ones and some as
large as its MTU, and connects to the pod, or to the service's address and each endpoint in use. It
says what it means if one way works and another does not.

A node is NODE or CLUSTER/NODE. A service is NAMESPACE/NAME, with :PORT for one of its ports. A pod
is an endpoint of a service, as NAMESPACE/POD or CLUSTER/NAMESPACE/POD, or an address. A name of
several things is that of the node, then of the service. Only TCP ports are connected to. Other
addresses cannot be pinged.`

// PingCommand is strait ping.
func PingCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "ping NODE|POD|SERVICE",
		Short: "Ask a node, pod or service for an answer, by each way there",
		Long:  pingLong,
		Example: "  strait ping us-west/us-west-1\n  strait ping default/serve:http\n" +
			"  strait ping c2/n1 --context c1 --node n2    # from node n2",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.CompleteService,
		RunE: func(cmd *cobra.Command, args []string) error {
			answer, err := cli.Ask(cmd.Context(), a, func(c *client.Client, ctx context.Context) (*api.Ping, error) { return c.Ping(ctx, args[0]) })
			if err != nil {
				return err
			}
			p, done, err := a.Begin(answer, answer.SeenFrom)
			if err == nil && !done {
				showPing(a, p, answer)
			}
			if err != nil {
				return err
			}
			switch answer.Outcome {
			case api.PingFailed:
				return cli.Exit(cli.ExitProblem, nil)
			case api.PingUnknown:
				return cli.Exit(cli.ExitUnknown, nil)
			}
			return nil
		},
	}
}

func showPing(a *cli.App, p cli.Printer, answer *api.Ping) {
	title := answer.Target + " " + answer.Name
	if answer.Target == "pod" && answer.Node != "" {
		title += " on " + answer.Node
	}
	p.Line("%s", title)
	var rows [][]string
	for _, w := range answer.Ways {
		answered, rtt := "–", "–"
		if w.Sent > 0 {
			answered = fmt.Sprintf("%d/%d", w.Answered, w.Sent)
		}
		if w.RTT > 0 {
			rtt = fmt.Sprintf("%.1f ms", w.RTT)
		}
		rows = append(rows, []string{w.Way, w.To, answered, rtt, w.Detail(a.Now())})
	}
	p.Table([]string{"WAY", "TO", "ANSWERED", "RTT", "DETAIL"}, rows)
	glyph := map[api.PingOutcome]string{api.PingOK: api.OK, api.PingFailed: api.Bad, api.PingUnknown: api.Warn}[answer.Outcome]
	p.Line("%s %s", glyph, answer.Finding)
	if answer.Try != "" {
		p.Line("  try  %s", answer.Try)
	}
}
