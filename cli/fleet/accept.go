package fleet

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"strait.io/strait/cli"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/install/standalone"
	"strait.io/strait/internal/durable"
	"strait.io/strait/internal/keyfile"
)

func acceptCommand(a *cli.App) *cobra.Command {
	var d keyDir
	var namespaces []string
	var yes bool
	c := &cobra.Command{
		Use:   "accept FILE",
		Short: "Become a member by an invitation, or pin what another member pinned",
		Long: `Accept an invitation, which makes this cluster a member of a clusterset: its keys and pins are
written. Or accept the pins of another member: the clusters in it that are new or changed are pinned
here too. Both show what is pinned, and ask. With --accept, this cluster takes only the Services of
these namespaces from them; from clusters that were pinned before, it goes on taking what it took.`,
		Example: "  strait clusterset accept rack2\n  strait clusterset accept pins.yaml --accept 'shop,team-*'",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			chosen := accepted(namespaces)
			return keysAccept(a, d, args[0], chosen, cmd.Flags().Changed("accept"), yes)
		},
	}
	d.flag(c)
	acceptFlag(c, &namespaces)
	c.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return c
}

func keysAccept(a *cli.App, d keyDir, file string, namespaces []string, chosen, yes bool) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, standalone.MaxSize+1))
	if err != nil {
		return fmt.Errorf("read %s: %w", file, err)
	}
	if strings.HasPrefix(strings.TrimSpace(string(text)), "{") {
		return acceptInvitation(a, d, text, namespaces, yes)
	}
	offered, err := authority.ParsePins(text)
	if err != nil {
		return fmt.Errorf("%s is neither an invitation nor pins: %w", file, err)
	}
	pins, _, own, err := d.read()
	if err != nil {
		return err
	}
	if !chosen {
		namespaces = nil // what was accepted from a cluster stays accepted
	}
	after, changed, err := standalone.Merge(pins, own, offered, namespaces)
	if err != nil {
		return err
	}
	if !chosen {
		for i, p := range changed {
			if _, known := pins[p.Cluster]; !known {
				changed[i].Namespaces = []string{"*"}
				after[p.Cluster] = changed[i]
			}
		}
	}
	if len(changed) == 0 {
		a.Printer().Line("nothing to do: %s has all of it", d.pins())
		return nil
	}
	shown := authority.Pins{}
	for _, p := range changed {
		shown[p.Cluster] = p
	}
	showPins(a, shown)
	if err := a.Confirm("Pin these clusters?", yes); err != nil {
		return err
	}
	if err := d.writePins(after); err != nil {
		return err
	}
	a.Printer().Line("pinned in %s; daemons that read it follow within seconds", d.pins())
	return nil
}

func acceptInvitation(a *cli.App, d keyDir, text []byte, namespaces []string, yes bool) error {
	invitation, err := standalone.Open(text)
	if err != nil {
		return err
	}
	root, err := authority.ParsePrivate(string(invitation.Root))
	if err != nil {
		return err
	}
	offered, err := invitation.PinsOf()
	if err != nil {
		return err
	}
	own := invitation.Cluster
	pins, _, err := standalone.Merge(authority.Pins{own: offered[own]}, own, offered, namespaces)
	if err != nil {
		return err
	}
	showPins(a, pins)
	if err := a.Confirm(fmt.Sprintf("Become cluster %s, and pin the others?", own), yes); err != nil {
		return err
	}
	gossip, err := keyfile.LoadOrMake(d.gossip(), func() (string, error) { return string(invitation.GossipKey), nil })
	if err != nil {
		return fmt.Errorf("gossip key: %w", err)
	}
	if gossip, err = oneGossipKey(gossip); err != nil {
		return err
	}
	if gossip != string(invitation.GossipKey) {
		return fmt.Errorf("%s is the gossip key of another clusterset; remove it if this machine leaves that one", d.gossip())
	}
	if err := d.settle(root, pins); err != nil {
		return err
	}
	if len(invitation.Seeds) > 0 {
		err := durable.Replace(d.seeds(), func(f *os.File) error {
			_, err := fmt.Fprintln(f, strings.Join(invitation.Seeds, "\n"))
			return err
		})
		if err != nil {
			return err
		}
	}
	showConfig(a, d)
	return nil
}
