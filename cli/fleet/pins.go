package fleet

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"strait.io/strait/cli"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/daemon/api"
)

func pinsCommand(a *cli.App) *cobra.Command {
	var d keyDir
	c := &cobra.Command{
		Use:     "pins",
		Short:   "Show the clusters that this one believes, outside Kubernetes",
		Example: "  strait clusterset pins\n  strait clusterset pins -o yaml",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			pins, err := readPins(d.pins())
			if err != nil {
				return err
			}
			if done, err := a.Data(pins); done {
				return err
			}
			showPins(a, pins)
			return pins.Overlap()
		},
	}
	d.flag(c)
	return c
}

// showPins prints what is pinned.
func showPins(a *cli.App, pins authority.Pins) {
	var rows [][]string
	for c, p := range pins {
		roots := make([]string, len(p.Roots))
		for i, r := range p.Roots {
			roots[i] = r.Fingerprint()
		}
		rows = append(rows, []string{string(c), strings.Join(roots, " "), listed(p.Pods), listed(p.Nodes), places(p.Regions), places(p.Zones), cell(strings.Join(p.Namespaces, " ")), fmt.Sprint(p.Quota.WithDefaults().Exports)})
	}
	slices.SortFunc(rows, func(a, b []string) int { return strings.Compare(a[0], b[0]) })
	a.Printer().Table(cli.WithoutEmpty([]string{"CLUSTER", "ROOT", "PODS", "NODES", "REGIONS", "ZONES", "ACCEPTED NAMESPACES", "EXPORTS UP TO"}, rows))
}

// places lists regions or zones. Nodes without the label are in "none".
func places(names []string) string {
	names = slices.Clone(names)
	for i := range names {
		names[i] = cmp.Or(names[i], "none")
	}
	return cell(strings.Join(names, " "))
}

func listed(ranges []netip.Prefix) string {
	texts := make([]string, len(ranges))
	for i, r := range ranges {
		texts[i] = r.String()
	}
	return cell(strings.Join(texts, " "))
}

func cell(text string) string {
	if text == "" {
		return api.None
	}
	return text
}
