package route

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"strait.io/strait/internal/problem"
)

// CleanUp removes strait's rules, its routes and the device, in this order. It succeeds if there
// are none. A device of another kind than WireGuard or TUN is not strait's: it is not deleted, and
// is an error.
func CleanUp(cfg Config) error {
	cfg = cfg.withDefaults()
	h, err := open()
	if err != nil {
		return err
	}
	defer h.Close()
	return errors.Join(cfg.removeRules(h), cfg.removeRoutes(h), RemoveDevice(cfg.Device))
}

func (c Config) removeRules(h *netlink.Handle) error {
	var errs []error
	for _, family := range families {
		rules, err := c.rules(h, family)
		errs = append(errs, err, deleteRules(h, rules))
	}
	return errors.Join(errs...)
}

func (c Config) removeRoutes(h *netlink.Handle) error {
	have, err := c.installed()
	if err != nil {
		return err
	}
	r := New(c)
	var v verdicts
	for _, e := range have {
		r.remove(h, e, &v)
	}
	r.cfg.Local = nil
	r.reconcileLocal(h, true, &v)
	return problem.Strict(v.problems, errors.Join(v.errs...))
}

// RemoveDevice deletes the device with its routes. It succeeds if there is none. A device of another
// kind than WireGuard or TUN is an error.
func RemoveDevice(device string) error {
	if device == "" {
		return nil
	}
	l, err := netlink.LinkByName(device)
	var missing netlink.LinkNotFoundError
	switch {
	case errors.As(err, &missing):
		return nil
	case err != nil:
		return fmt.Errorf("find device %s: %w", device, err)
	}
	if err := foreign(l); err != nil {
		return err
	}
	if err := netlink.LinkDel(l); err != nil && !errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("delete device %s: %w", device, err)
	}
	return nil
}
