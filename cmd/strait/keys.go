package main

import (
	"bufio"
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/daemon/api"
	"strait.io/strait/install/bundle"
	"strait.io/strait/install/standalone"
	"strait.io/strait/internal/durable"
	"strait.io/strait/internal/keyfile"
)

// defaultKeys is the directory where straitd's configuration has its keys by default.
const defaultKeys = "/etc/strait"

// keyDir is the directory with the keys and pins of a cluster outside Kubernetes.
type keyDir string

func (d keyDir) root() string   { return filepath.Join(string(d), "root.key") }
func (d keyDir) gossip() string { return filepath.Join(string(d), "gossip.key") }
func (d keyDir) pins() string   { return filepath.Join(string(d), "pins.yaml") }
func (d keyDir) seeds() string  { return filepath.Join(string(d), "seeds") }

func (d *keyDir) flag(c *cobra.Command) {
	c.Flags().StringVar((*string)(d), "dir", defaultKeys, "`directory` of the keys and pins of this cluster")
}

// place is what an operator sets for a cluster.
type place struct {
	id                          string
	pods, nodes, regions, zones []string
}

func (p *place) flags(c *cobra.Command, whose string) {
	c.Flags().StringVar(&p.id, "id", "", "`id` of the cluster: a DNS label")
	c.Flags().StringSliceVar(&p.pods, "pods", nil, "`ranges` of "+whose+" pods, as in 10.1.0.0/16")
	c.Flags().StringSliceVar(&p.nodes, "nodes", nil, "`ranges` of "+whose+" machines, as in 192.0.2.0/24")
	c.Flags().StringSliceVar(&p.regions, "regions", nil, "`regions` where its nodes can be; without it, anywhere")
	c.Flags().StringSliceVar(&p.zones, "zones", nil, "`zones` where its nodes can be; without it, all of its regions")
	_ = c.MarkFlagRequired("id")
	_ = c.MarkFlagRequired("nodes")
}

func (p place) pin() (authority.Pin, error) {
	pin := authority.Pin{Cluster: clustermesh.ClusterName(p.id), Regions: p.regions, Zones: p.zones}
	for _, f := range []struct {
		name  string
		texts []string
		to    *[]netip.Prefix
	}{{"--pods", p.pods, &pin.Pods}, {"--nodes", p.nodes, &pin.Nodes}} {
		for _, text := range f.texts {
			r, err := netip.ParsePrefix(text)
			if err != nil {
				return pin, usageError("%s %q: want a range, as in 10.1.0.0/16", f.name, text)
			}
			*f.to = append(*f.to, r)
		}
	}
	return pin, nil
}

func (a *app) keysInitCommand() *cobra.Command {
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
		RunE: func(*cobra.Command, []string) error { return a.keysInit(d, p) },
	}
	d.flag(c)
	p.flags(c, "this cluster's")
	return c
}

func (a *app) keysInit(d keyDir, p place) error {
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
	a.showPins(pins)
	a.showConfig(d)
	return nil
}

// settle writes the root and the pins of a new cluster. It replaces neither.
func (d keyDir) settle(root authority.PrivateKey, pins authority.Pins) error {
	err := keyfile.Create(d.root(), root.Base64())
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists: this machine has the keys of a cluster already; give another --dir, or remove it if that cluster is gone for good", d.root())
	}
	if err != nil {
		return fmt.Errorf("write the root key: %w", err)
	}
	return d.writePins(pins)
}

func (d keyDir) writePins(pins authority.Pins) error {
	return durable.Replace(d.pins(), func(f *os.File) error {
		_, err := fmt.Fprintf(f, "# The clusters that this one believes. Change it with strait clusterset, or by hand.\n%s", pins.Encode())
		return err
	})
}

// read returns the pins, the root key, and which cluster this is.
func (d keyDir) read() (pins authority.Pins, root authority.PrivateKey, own clustermesh.ClusterName, err error) {
	text, err := keyfile.Read(d.root(), keyfile.AllUsers)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, root, "", fmt.Errorf("%w: this machine has no root key; make one with strait clusterset init, or accept an invitation", err)
	}
	if err == nil {
		root, err = authority.ParsePrivate(text)
	}
	if err != nil {
		return nil, root, "", fmt.Errorf("root key %s: %w", d.root(), err)
	}
	if pins, err = readPins(d.pins()); err != nil {
		return nil, root, "", err
	}
	for c, p := range pins {
		if slices.Contains(p.Roots, root.Public()) {
			return pins, root, c, nil
		}
	}
	return nil, root, "", fmt.Errorf("%s does not list the cluster of %s, whose fingerprint is %s", d.pins(), d.root(), root.Public().Fingerprint())
}

func readPins(path string) (authority.Pins, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("pins: %w", err)
	}
	pins, err := authority.ParsePins(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return pins, nil
}

func (a *app) keysInviteCommand() *cobra.Command {
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
			return a.keysInvite(d, p, namespaces, seeds, out, yes)
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

func (a *app) keysInvite(d keyDir, p place, namespaces, seeds []string, out string, yes bool) error {
	for _, s := range seeds {
		if !strings.Contains(s, ":") {
			return usageError("--seed %q: want HOST:PORT", s)
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
	a.showPins(authority.Pins{pin.Cluster: pins[pin.Cluster]})
	if err := a.confirm("Pin this cluster?", yes); err != nil {
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
	pr := a.printer()
	pr.line("pinned in %s; invitation for %s: %s (it holds secrets)", d.pins(), pin.Cluster, out)
	pr.line("next: on a machine of cluster %s, strait clusterset accept %s; then remove the invitation", pin.Cluster, filepath.Base(out))
	return nil
}

func (a *app) keysAcceptCommand() *cobra.Command {
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
			return a.keysAccept(d, args[0], chosen, cmd.Flags().Changed("accept"), yes)
		},
	}
	d.flag(c)
	acceptFlag(c, &namespaces)
	c.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return c
}

func (a *app) keysAccept(d keyDir, file string, namespaces []string, chosen, yes bool) error {
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
		return a.acceptInvitation(d, text, namespaces, yes)
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
		a.printer().line("nothing to do: %s has all of it", d.pins())
		return nil
	}
	shown := authority.Pins{}
	for _, p := range changed {
		shown[p.Cluster] = p
	}
	a.showPins(shown)
	if err := a.confirm("Pin these clusters?", yes); err != nil {
		return err
	}
	if err := d.writePins(after); err != nil {
		return err
	}
	a.printer().line("pinned in %s; daemons that read it follow within seconds", d.pins())
	return nil
}

func (a *app) acceptInvitation(d keyDir, text []byte, namespaces []string, yes bool) error {
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
	a.showPins(pins)
	if err := a.confirm(fmt.Sprintf("Become cluster %s, and pin the others?", own), yes); err != nil {
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
	a.showConfig(d)
	return nil
}

func (a *app) keysPinsCommand() *cobra.Command {
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
			if done, err := a.data(pins); done {
				return err
			}
			a.showPins(pins)
			return pins.Overlap()
		},
	}
	d.flag(c)
	return c
}

// showPins prints what is pinned.
func (a *app) showPins(pins authority.Pins) {
	var rows [][]string
	for c, p := range pins {
		roots := make([]string, len(p.Roots))
		for i, r := range p.Roots {
			roots[i] = r.Fingerprint()
		}
		rows = append(rows, []string{string(c), strings.Join(roots, " "), listed(p.Pods), listed(p.Nodes), places(p.Regions), places(p.Zones), cell(strings.Join(p.Namespaces, " ")), fmt.Sprint(p.Quota.WithDefaults().Exports)})
	}
	slices.SortFunc(rows, func(a, b []string) int { return strings.Compare(a[0], b[0]) })
	a.printer().table(withoutEmpty([]string{"CLUSTER", "ROOT", "PODS", "NODES", "REGIONS", "ZONES", "ACCEPTED NAMESPACES", "EXPORTS UP TO"}, rows))
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

// showConfig prints what straitd's configuration needs.
func (a *app) showConfig(d keyDir) {
	p := a.printer()
	p.line("in the configuration of straitd, on every machine of this cluster:")
	p.line("  gossip: {keyFile: %s, seedsFile: %s}", d.gossip(), d.seeds())
	p.line("  authority: {rootFile: %s, pinsFile: %s}", d.root(), d.pins())
}

// confirm asks a question, unless yes. Anything but y means no.
func (a *app) confirm(question string, yes bool) error {
	if yes {
		return nil
	}
	fmt.Fprintf(a.stdout, "%s [y/N] ", question)
	answer, err := bufio.NewReader(a.stdin).ReadString('\n')
	switch answer = strings.ToLower(strings.TrimSpace(answer)); {
	case answer == "y" || answer == "yes":
		return nil
	case err != nil && answer == "":
		fmt.Fprintln(a.stdout)
		return usageError("no answer, so nothing was written; pass --yes in scripts")
	}
	return &exitError{exitProblem, errors.New("nothing was written")}
}
