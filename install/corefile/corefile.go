// Package corefile adds the clusterset's zone to a CoreDNS Corefile, and removes it.
//
// Input and output are the file's text. Everything else stays as it is, byte for byte, comments
// included. CoreDNS's own parser keeps no layout, so this package has its own, which knows the
// position of each word. Pure.
package corefile

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrNoKubernetes means that no server block uses the plugin kubernetes.
var ErrNoKubernetes = errors.New("no server block of the Corefile uses the plugin kubernetes")

func mistake(t token, text string) error {
	return fmt.Errorf("read Corefile: line %d: %s", t.line, text)
}

// edit replaces the bytes from start to end.
type edit struct {
	start, end int
	text       string
}

// apply makes all edits. Edits at the same position appear in the given order.
func apply(s string, edits []edit) string {
	slices.Reverse(edits) // from the last byte to the first, so that positions stay valid
	slices.SortStableFunc(edits, func(a, b edit) int { return b.start - a.start })
	for _, e := range edits {
		s = s[:e.start] + e.text + s[e.end:]
	}
	return s
}

// Add makes the plugin kubernetes answer for the zone from ServiceImports. If it already does, Add
// returns the text unchanged.
func Add(text, zone string) (string, error) {
	return proved(text, zone, add)
}

// proved makes a change, and refuses one that does not read its own result as done: CoreDNS would stop
// with such a file, and with it the cluster's names.
func proved(text, zone string, change func(text, zone string) (string, error)) (string, error) {
	got, err := change(text, zone)
	if err != nil {
		return "", err
	}
	if again, err := change(got, zone); err != nil || again != got {
		return "", errors.New("change Corefile: it is written in a way that strait cannot edit; " +
			"put each directive, and each closing brace, on a line of its own")
	}
	return got, nil
}

func add(text, zone string) (string, error) {
	blocks, err := parse(text)
	if err != nil {
		return "", err
	}
	for _, b := range blocks {
		for _, k := range b.keys {
			if zoneOf(k.text) == zone && b.kubernetes() == nil && !b.snippet() {
				return "", mistake(k, fmt.Sprintf("a separate server block answers for %s without the plugin kubernetes; remove it first", zone))
			}
		}
	}
	b := find(blocks, zone)
	if b == nil {
		return "", ErrNoKubernetes
	}
	edits := addKey(*b, zone)
	d := *b.kubernetes()
	edits = append(edits, addZone(*b, d, zone)...)
	edits = append(edits, addOption(text, d, "multicluster", zone)...)
	return apply(text, append(edits, b.addUncached(d, zone)...)), nil
}

// Remove undoes AddFallThrough and Add.
func Remove(text, zone string) (string, error) {
	text, err := removeFallThrough(text, zone)
	if err != nil {
		return "", err
	}
	blocks, err := parse(text)
	if err != nil {
		return "", err
	}
	var edits []edit
	for _, b := range blocks {
		d := b.kubernetes()
		if d == nil {
			continue
		}
		if !slices.ContainsFunc(d.body, func(o directive) bool { return o.name.text == "multicluster" && has(o.args, zone) }) {
			continue
		}
		for _, list := range [][]token{d.args, b.keys} {
			for _, t := range list {
				// A plugin without zones uses those of its block; a block must keep one.
				if zoneOf(t.text) == zone && (len(b.keys) > 1 || t != b.keys[0]) {
					edits = append(edits, cut(text, t))
				}
			}
		}
		edits = append(edits, removeOption(text, *d, "multicluster", zone)...)
		for _, o := range b.uncached() {
			if i := slices.IndexFunc(o.args[1:], func(t token) bool { return zoneOf(t.text) == zone }); i >= 0 && len(o.args) > 2 {
				edits = append(edits, cut(text, o.args[1+i]))
			}
		}
	}
	return apply(text, edits), nil
}

// kubernetes returns the directive of the plugin kubernetes; nil if the block has none.
func (b block) kubernetes() *directive {
	for i := range b.directives {
		if b.directives[i].name.text == "kubernetes" {
			return &b.directives[i]
		}
	}
	return nil
}

// uncached returns the options of the plugin cache that exempt zones, such as disable success ZONE.
func (b block) uncached() (out []directive) {
	for _, d := range b.directives {
		for _, o := range d.body {
			if d.name.text == "cache" && o.name.text == "disable" && len(o.args) > 1 {
				out = append(out, o)
			}
		}
	}
	return out
}

// addUncached exempts the zone from the cache wherever one of the plugin kubernetes' own zones is
// exempt, as in kubeadm's Corefile. Otherwise a new Service, or the loss of its pods, would be
// noticed only when the cached answers expire.
func (b block) addUncached(kubernetes directive, zone string) (out []edit) {
	for _, o := range b.uncached() {
		own := slices.ContainsFunc(o.args[1:], func(t token) bool { return has(kubernetes.args, zoneOf(t.text)) })
		if own && !has(o.args[1:], zone) {
			end := o.args[len(o.args)-1].end
			out = append(out, edit{end, end, " " + zone})
		}
	}
	return out
}

func (b block) snippet() bool { return len(b.keys) == 1 && strings.HasPrefix(b.keys[0].text, "(") }

// find returns the block with the plugin kubernetes that queries for the zone reach; if there is
// none, the first block with the plugin.
func find(blocks []block, zone string) *block {
	var first *block
	for i := range blocks {
		switch b := &blocks[i]; {
		case b.kubernetes() == nil:
		case b.covers(zone):
			return b
		case first == nil:
			first = b
		}
	}
	return first
}

// parseFor parses the text, and finds the block with the plugin kubernetes for the zone.
func parseFor(text, zone string) (blocks []block, of *block, err error) {
	if blocks, err = parse(text); err != nil {
		return nil, nil, err
	}
	if of = find(blocks, zone); of == nil {
		return nil, nil, ErrNoKubernetes
	}
	return blocks, of, nil
}

// covers reports whether queries for the zone reach the block. A snippet counts: it takes effect
// where it is imported.
func (b block) covers(zone string) bool {
	return b.snippet() || slices.ContainsFunc(b.keys, func(k token) bool {
		z := zoneOf(k.text)
		return z == "" || z == zone || strings.HasSuffix(zone, "."+z)
	})
}

// zoneOf returns the zone of a key such as dns://clusterset.local.:53, which can end in a comma.
// The root zone is empty.
func zoneOf(key string) string {
	key = strings.TrimSuffix(key, ",")
	if _, rest, ok := strings.Cut(key, "://"); ok {
		key = rest
	}
	if i := strings.LastIndexByte(key, ':'); i >= 0 {
		key = key[:i]
	}
	return strings.ToLower(strings.TrimSuffix(key, "."))
}

func has(list []token, zone string) bool {
	return slices.ContainsFunc(list, func(t token) bool { return zoneOf(t.text) == zone })
}

// addKey makes queries for the zone reach the block: it adds a key in the form of the first one.
func addKey(b block, zone string) []edit {
	if b.covers(zone) || len(b.keys) == 0 {
		return nil
	}
	first := b.keys[0]
	key := strings.TrimSuffix(first.text, ",")
	scheme, rest, ok := strings.Cut(key, "://")
	if ok {
		scheme += "://"
	} else {
		scheme, rest = "", key
	}
	port := ""
	if i := strings.LastIndexByte(rest, ':'); i >= 0 {
		port = rest[i:]
	}
	return []edit{{first.start, first.start, scheme + zone + port + strings.TrimPrefix(first.text, key) + " "}}
}

// addZone adds the zone to the plugin's list of zones. A plugin without a list uses the zones of
// its block; since a list replaces those, they are added too.
func addZone(b block, d directive, zone string) []edit {
	if has(d.args, zone) {
		return nil
	}
	if len(d.args) > 0 {
		return []edit{{d.args[0].end, d.args[0].end, " " + zone}}
	}
	list := ""
	for _, k := range b.keys {
		z := zoneOf(k.text)
		if z == "" {
			z = "."
		}
		if !b.snippet() && z != zone {
			list += " " + z
		}
	}
	return []edit{{d.name.end, d.name.end, list + " " + zone}}
}

// addOption adds a zone to an option such as multicluster ZONE.
func addOption(text string, d directive, name, zone string) []edit {
	for _, o := range d.body {
		if o.name.text != name {
			continue
		}
		if has(o.args, zone) {
			return nil
		}
		return []edit{{o.name.end, o.name.end, " " + zone}}
	}
	outer := indent(text, d.name.start)
	inner := outer + "    "
	if strings.Contains(outer, "\t") {
		inner = outer + "\t"
	}
	if len(d.body) > 0 {
		inner = indent(text, d.body[0].name.start)
	}
	option := inner + name + " " + zone + "\n"
	if !d.braces() {
		end := d.name.end
		if len(d.args) > 0 {
			end = d.args[len(d.args)-1].end
		}
		return []edit{{end, end, " {\n" + option + outer + "}"}}
	}
	if d.shut.line == d.open.line {
		return []edit{{d.shut.start, d.shut.start, "\n" + option + outer}}
	}
	begin := lineStart(text, d.shut.start)
	// An option can be on the line of the closing brace.
	if strings.TrimSpace(text[begin:d.shut.start]) != "" {
		return []edit{{d.shut.start, d.shut.start, "\n" + option + outer}}
	}
	return []edit{{begin, begin, option}}
}

// removeOption removes the zone from an option, and the option, or the plugin's braces, if they are
// empty then.
func removeOption(text string, d directive, name, zone string) []edit {
	for _, o := range d.body {
		if o.name.text != name || !has(o.args, zone) {
			continue
		}
		if len(o.args) > 1 {
			i := slices.IndexFunc(o.args, func(t token) bool { return zoneOf(t.text) == zone })
			return []edit{cut(text, o.args[i])}
		}
		begin, end := lineStart(text, o.name.start), lineEnd(text, o.args[0].end)
		// The option can share its line with others.
		if strings.TrimSpace(text[begin:o.name.start]+text[o.args[0].end:end]) != "" {
			return []edit{{o.name.start, o.args[0].end, ""}}
		}
		if len(d.body) == 1 && strings.TrimSpace(text[d.open.end:begin]+text[end:d.shut.start]) == "" {
			return []edit{{d.open.start - leading(text, d.open.start), d.shut.end, ""}}
		}
		return []edit{{begin, end, ""}}
	}
	return nil
}

// cut removes a word and the blanks before it, or those after it if it is the first of its line.
func cut(text string, t token) edit {
	if n := leading(text, t.start); n > 0 && lineStart(text, t.start) < t.start-n {
		return edit{t.start - n, t.end, ""}
	}
	end := t.end
	for end < len(text) && (text[end] == ' ' || text[end] == '\t') {
		end++
	}
	return edit{t.start, end, ""}
}

// leading counts the blanks before a position.
func leading(text string, at int) (n int) {
	for at-n > 0 && (text[at-n-1] == ' ' || text[at-n-1] == '\t') {
		n++
	}
	return n
}

func lineStart(text string, at int) int { return strings.LastIndexByte(text[:at], '\n') + 1 }

// lineEnd returns the position after the line's end.
func lineEnd(text string, at int) int {
	if i := strings.IndexByte(text[at:], '\n'); i >= 0 {
		return at + i + 1
	}
	return len(text)
}

// indent returns the blanks at the beginning of the line.
func indent(text string, at int) string {
	begin := lineStart(text, at)
	line := text[begin:at]
	return line[:len(line)-len(strings.TrimLeft(line, " \t"))]
}
