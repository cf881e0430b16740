package fleet

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"strait.io/strait/cli"
	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/daemon/api/client"
	"strait.io/strait/internal/durable"
	"strait.io/strait/internal/keyfile"
)

func keysRotate(a *cli.App, d keyDir) error {
	pins, root, own, err := d.read()
	if err != nil {
		return err
	}
	text, err := keyfile.LoadOrMake(d.nextRoot(), func() (string, error) {
		k, err := authority.Generate(rand.Reader)
		return k.Base64(), err
	})
	if err != nil {
		return fmt.Errorf("the new root key: %w", err)
	}
	next, err := authority.ParsePrivate(text)
	if err != nil {
		return fmt.Errorf("the new root key %s: %w", d.nextRoot(), err)
	}
	pin := pins[own]
	pin.Roots = []authority.PublicKey{root.Public(), next.Public()}
	pins[own] = pin
	if err := d.writePins(pins); err != nil {
		return err
	}
	showPins(a, authority.Pins{own: pin})
	p := a.Printer()
	p.Line("next: copy %s to all machines of this cluster; accept it in the others: strait clusterset accept", d.pins())
	p.Line("then: strait clusterset rotate --finish")
	return nil
}

func keysFinish(ctx context.Context, a *cli.App, d keyDir) error {
	pins, root, own, err := d.read()
	if err != nil {
		return err
	}
	text, err := keyfile.Read(d.nextRoot(), keyfile.AnyOther)
	if errors.Is(err, fs.ErrNotExist) && len(pins[own].Roots) > 1 {
		return keysForget(ctx, a, d, pins, own, root.Public())
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: begin with strait clusterset rotate", err)
	}
	if err != nil {
		return fmt.Errorf("the new root key: %w", err)
	}
	next, err := authority.ParsePrivate(text)
	if err != nil {
		return fmt.Errorf("the new root key %s: %w", d.nextRoot(), err)
	}
	pin := pins[own]
	if !slices.Contains(pin.Roots, next.Public()) {
		return fmt.Errorf("%s does not list the key in %s: begin again with strait clusterset rotate", d.pins(), d.nextRoot())
	}
	// The pins list both until all nodes are stated by the new one.
	err = durable.Replace(d.root(), func(f *os.File) error {
		_, err := f.WriteString(next.Base64() + "\n")
		return err
	})
	if err != nil {
		return err
	}
	if err := os.Remove(d.nextRoot()); err != nil {
		return err
	}
	showPins(a, authority.Pins{own: pin})
	p := a.Printer()
	p.Line("next: copy %s to all machines of this cluster that have the root, and restart straitd there", d.root())
	p.Line("then: strait clusterset rotate --finish again, so that the old root is not trusted any more")
	return nil
}

// keysForget is the last step: the old root goes from the pins, if no node needs it any more.
func keysForget(ctx context.Context, a *cli.App, d keyDir, pins authority.Pins, own clustermesh.ClusterName, root authority.PublicKey) error {
	list, err := cli.Ask(ctx, a, (*client.Client).Members)
	if err != nil {
		return err
	}
	if left := list.OfOtherRoot(string(own), root.Fingerprint()); len(left) > 0 {
		return fmt.Errorf("%s: still certified by the old root; copy %s to the machines that have the root, restart straitd there, and run this command again; the others follow within seconds", cli.Some(left, 5), d.root())
	}
	pin := pins[own]
	pin.Roots = []authority.PublicKey{root}
	pins[own] = pin
	if err := d.writePins(pins); err != nil {
		return err
	}
	showPins(a, authority.Pins{own: pin})
	p := a.Printer()
	p.Line("next: copy %s to all machines of this cluster", d.pins())
	p.Line("then: accept it in the other clusters: strait clusterset accept")
	return nil
}
