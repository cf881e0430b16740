package fleet

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"strait.io/strait/cli"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/install/bundle"
	"strait.io/strait/install/standalone"
	"strait.io/strait/internal/keyfile"
)

func inviteCommand(a *cli.App) *cobra.Command {
	var d keyDir
	var p place
	var namespaces, seeds []string
	var out string
	var yes bool
	c := &cobra.Command{
		Use:   "invite",
		Short: "Pin a new cluster outside Kubernetes, and write its invitation",
		Long: `Pin a new cluster, and write the invitation with which strait clusterset accept makes it a member.
The invitation holds secrets: its holder can act as that cluster. Copy the changed pins to all
machines of this cluster; the daemons read them without a restart. The other clusters accept them
too: strait clusterset accept pins.yaml. With --accept, this cluster takes only the Services of
these namespaces from the new one.`,
		Example: "  strait clusterset invite --id rack2 --pods 10.2.0.0/16 --nodes 198.51.100.0/24 --out rack2\n" +
			"  strait clusterset invite --id rack3 --nodes 203.0.113.0/24 --accept shop --out rack3",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return keysInvite(a, d, p, namespaces, seeds, out, yes)
		},
	}
	d.flag(c)
	p.flags(c, "the new cluster's")
	acceptFlag(c, &namespaces)
	c.Flags().StringSliceVar(&seeds, "seed", nil, "`HOST:PORT` of nodes of this cluster, where the new one finds it")
	c.Flags().StringVar(&out, "out", "", "`file` for the invitation")
	c.Flags().BoolVar(&yes, "yes", false, "do not ask")
	_ = c.MarkFlagRequired("out")
	return c
}

func acceptFlag(c *cobra.Command, namespaces *[]string) {
	c.Flags().StringSliceVar(namespaces, "accept", []string{"*"}, "`namespaces` to accept: patterns such as team-*, or none")
}

// accepted returns the patterns that --accept means.
func accepted(namespaces []string) []string {
	if slices.Equal(namespaces, []string{"none"}) {
		return []string{}
	}
	return namespaces
}

func keysInvite(a *cli.App, d keyDir, p place, namespaces, seeds []string, out string, yes bool) error {
	for _, s := range seeds {
		if !strings.Contains(s, ":") {
			return cli.UsageError("--seed %q: want HOST:PORT", s)
		}
	}
	pin, err := p.pin()
	if err != nil {
		return err
	}
	pins, _, _, err := d.read()
	if err != nil {
		return err
	}
	text, err := keyfile.Read(d.gossip(), keyfile.AllUsers)
	if err != nil {
		return fmt.Errorf("gossip key: %w", err)
	}
	gossip, err := oneGossipKey(text)
	if err != nil {
		return err
	}
	root, err := authority.Generate(rand.Reader)
	if err != nil {
		return err
	}
	pin.Namespaces = accepted(namespaces)
	pins, invitation, err := standalone.Invite(pins, pin, root, bundle.Key(gossip), seeds, time.Now())
	if err != nil {
		return err
	}
	showPins(a, authority.Pins{pin.Cluster: pins[pin.Cluster]})
	if err := a.Confirm("Pin this cluster?", yes); err != nil {
		return err
	}
	encoded, err := invitation.Encode()
	if err != nil {
		return err
	}
	// First what can be made again.
	err = keyfile.Create(out, string(encoded))
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists; give --out another name, or remove it", out)
	}
	if err != nil {
		return fmt.Errorf("write the invitation: %w", err)
	}
	if err := d.writePins(pins); err != nil {
		return err
	}
	pr := a.Printer()
	pr.Line("pinned in %s; invitation for %s: %s (it holds secrets)", d.pins(), pin.Cluster, out)
	pr.Line("next: on a machine of cluster %s, strait clusterset accept %s; then remove the invitation", pin.Cluster, filepath.Base(out))
	return nil
}
