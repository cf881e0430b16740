package main

import "github.com/spf13/cobra"

const peerLong = `Look at the nodes of the clusterset as WireGuard peers.`

func (a *app) peerCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "peer",
		Short: "Show nodes as WireGuard peers",
		Long:  peerLong,
		Example: "  strait peer showconf node us-east-1\n" +
			"  strait peer showconf node us-east-1 --as-peer",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	show := &cobra.Command{
		Use:     "showconf",
		Short:   "Print WireGuard configuration that wg takes",
		Long:    "Print WireGuard configuration that wg takes. It never has a private key.",
		Example: "  strait peer showconf node us-east-1\n  strait peer showconf node eu-central/n1 --as-peer -o json",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	show.AddCommand(a.showconfNodeCommand())
	cmd.AddCommand(show)
	return cmd
}
