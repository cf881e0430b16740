package fleet

import (
	"crypto/rand"
	"fmt"

	"github.com/spf13/cobra"

	"strait.io/strait/cli"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/internal/keyfile"
)

func initCommand(a *cli.App) *cobra.Command {
	var d keyDir
	var p place
	c := &cobra.Command{
		Use:   "init",
		Short: "Make the keys of the first cluster outside Kubernetes",
		Long: `Make the root key of a cluster outside Kubernetes, its pins, and the gossip key of the clusterset.
Copy the directory to all machines of the cluster, and name the files in straitd's configuration.
Then invite other clusters.`,
		Example: "  strait clusterset init --id rack1 --pods 10.1.0.0/16 --nodes 192.0.2.0/24\n" +
			"  strait clusterset init --id rack1 --nodes 192.0.2.0/24 --dir /root/keys    # no pods",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return keysInit(a, d, p) },
	}
	d.flag(c)
	p.flags(c, "this cluster's")
	return c
}

func keysInit(a *cli.App, d keyDir, p place) error {
	pin, err := p.pin()
	if err != nil {
		return err
	}
	root, err := authority.Generate(rand.Reader)
	if err != nil {
		return err
	}
	pin.Roots = []authority.PublicKey{root.Public()}
	pins, err := authority.ParsePins(authority.Pins{pin.Cluster: pin}.Encode())
	if err != nil {
		return err
	}
	if _, err := keyfile.LoadOrMake(d.gossip(), func() (string, error) { return string(freshKey()), nil }); err != nil {
		return fmt.Errorf("gossip key: %w", err)
	}
	if err := d.settle(root, pins); err != nil {
		return err
	}
	showPins(a, pins)
	showConfig(a, d)
	return nil
}

// showConfig prints what straitd's configuration needs.
func showConfig(a *cli.App, d keyDir) {
	p := a.Printer()
	p.Line("in the configuration of straitd, on every machine of this cluster:")
	p.Line("  gossip: {keyFile: %s, seedsFile: %s}", d.gossip(), d.seeds())
	p.Line("  authority: {rootFile: %s, pinsFile: %s}", d.root(), d.pins())
}
