package route

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"strait.io/strait/datapath"
)

// reconcileRule makes sure that exactly one of strait's rules leads to the table. It adds the right
// rule before it removes wrong ones (with another priority, from an earlier configuration; or from
// a version that did not mark the tunnel's packets). If prune is false, wrong ones stay.
func (r *Router) reconcileRule(h *netlink.Handle, family int, prune bool) error {
	rules, err := r.cfg.rules(h, family)
	if err != nil {
		return err
	}
	found := false
	var wrong []netlink.Rule
	for _, rule := range rules {
		if !found && rule.Priority == r.cfg.Priority && leavesOutMarked(rule) && forAll(rule) {
			found = true
			continue
		}
		wrong = append(wrong, rule)
	}
	if !found {
		err := h.RuleAdd(r.cfg.rule(family))
		switch {
		case errors.Is(err, unix.EEXIST): // another process added it at the same moment
		case family == unix.AF_INET6 && noFamily(err):
			return nil
		case err != nil:
			return fmt.Errorf("add %s rule %d to table %d: %w", familyName(family), r.cfg.Priority, r.cfg.Table, err)
		}
		r.log.Debug("added rule", "family", familyName(family), "priority", r.cfg.Priority, "table", r.cfg.Table)
	}
	if !prune {
		return nil
	}
	return deleteRules(h, wrong)
}

// rules returns the rules of strait's protocol that lead to strait's table.
func (c Config) rules(h *netlink.Handle, family int) ([]netlink.Rule, error) {
	all, err := retryInterrupted(func() ([]netlink.Rule, error) { return h.RuleList(family) })
	if family == unix.AF_INET6 && noFamily(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list %s rules: %w", familyName(family), err)
	}
	var ours []netlink.Rule
	for _, rule := range all {
		if rule.Protocol == Protocol && rule.Table == c.Table {
			ours = append(ours, rule)
		}
	}
	return ours, nil
}

// rule returns the rule that leads packets to strait's table, except those of the tunnel itself. In
// the syntax of ip: not fwmark 0x1000/0x1000 lookup 5354 pref 500.
func (c Config) rule(family int) *netlink.Rule {
	mask := uint32(datapath.TunnelMarkMask)
	rule := netlink.NewRule()
	rule.Family = family
	rule.Table = c.Table
	rule.Priority = c.Priority
	rule.Protocol = Protocol
	rule.Invert, rule.Mark, rule.Mask = true, datapath.TunnelMark, &mask
	return rule
}

func leavesOutMarked(r netlink.Rule) bool {
	return r.Invert && r.Mark == datapath.TunnelMark && r.Mask != nil && *r.Mask == datapath.TunnelMarkMask
}

// forAll reports whether a rule asks for nothing but the mark.
func forAll(r netlink.Rule) bool {
	return r.Src == nil && r.Dst == nil && r.IifName == "" && r.OifName == "" && r.Tos == 0 &&
		r.IPProto == 0 && r.Sport == nil && r.Dport == nil && r.UIDRange == nil
}

func deleteRules(h *netlink.Handle, rules []netlink.Rule) error {
	var errs []error
	for _, rule := range rules {
		if err := h.RuleDel(&rule); err != nil && !errors.Is(err, unix.ENOENT) {
			errs = append(errs, fmt.Errorf("remove %s rule %d: %w", familyName(rule.Family), rule.Priority, err))
		}
	}
	return errors.Join(errs...)
}
