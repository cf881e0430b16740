package corefile

import (
	"errors"
	"fmt"
	"slices"
)

// ErrNoForward means that a resolver in front of CoreDNS forwards nothing for the cluster's own
// zone.
var ErrNoForward = errors.New("no server block of the Corefile forwards the cluster's own zone")

// LocalZone returns the first zone of the plugin kubernetes that has names of Services, besides the
// given one: cluster.local, unless the cluster has another domain.
func LocalZone(text, zone string) (string, error) {
	_, b, err := parseFor(text, zone)
	if err != nil {
		return "", err
	}
	if local := b.ownZone(zone); local != "" {
		return local, nil
	}
	for _, k := range b.keys { // the plugin has the zones of its block
		if z := zoneOf(k.text); z != "" && z != zone && !b.snippet() && domain.MatchString(z) {
			return z, nil
		}
	}
	return "", fmt.Errorf("the plugin kubernetes has no zone besides %s", zone)
}

// AddForwarded makes a resolver in front of CoreDNS, such as NodeLocal DNSCache, treat the zone as
// it treats the cluster's own, which it forwards to CoreDNS. If it already does, or has a server
// block for the zone, AddForwarded returns the text unchanged.
func AddForwarded(text, zone, local string) (string, error) {
	return proved(text, zone, func(text, zone string) (string, error) {
		found, err := forwarding(text, local)
		if err != nil {
			return "", err
		}
		blocks, _ := parse(text) // forwarding has parsed it
		for _, b := range blocks {
			if has(b.keys, zone) {
				return text, nil
			}
		}
		var edits []edit
		for _, b := range found {
			edits = append(edits, addKey(b, zone)...)
		}
		return apply(text, edits), nil
	})
}

// RemoveForwarded undoes AddForwarded.
func RemoveForwarded(text, zone, local string) (string, error) {
	found, err := forwarding(text, local)
	if err != nil {
		return "", err
	}
	var edits []edit
	for _, b := range found {
		for _, k := range b.keys {
			if zoneOf(k.text) == zone {
				edits = append(edits, cut(text, k))
			}
		}
	}
	return apply(text, edits), nil
}

// forwarding returns the server blocks that forward the queries for a zone.
func forwarding(text, zone string) (out []block, err error) {
	blocks, err := parse(text)
	if err != nil {
		return nil, err
	}
	for _, b := range blocks {
		forwards := slices.ContainsFunc(b.directives, func(d directive) bool { return d.name.text == "forward" })
		if forwards && has(b.keys, zone) {
			out = append(out, b)
		}
	}
	if out == nil {
		return nil, ErrNoForward
	}
	return out, nil
}
