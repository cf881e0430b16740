package corefile

import (
	"fmt"
	"regexp"
	"strings"
)

const (
	// relayPort is where CoreDNS listens, on its own loopback, for the local names that it did not
	// find. Only a server block can rewrite a name after the plugin kubernetes was asked for it.
	relayPort = "5300"
	loopback  = "127.0.0.1"
)

// AddFallThrough makes names of Services that the cluster does not have those of the zone: what the
// plugin kubernetes does not find below svc.cluster.local goes to a server block, which asks for the
// same name in the zone. The text must be one that Add returned. If it does so already,
// AddFallThrough returns it unchanged.
func AddFallThrough(text, zone string) (string, error) {
	return proved(text, zone, addFallThrough)
}

func addFallThrough(text, zone string) (string, error) {
	blocks, b, err := parseFor(text, zone)
	if err != nil {
		return "", err
	}
	for _, d := range b.directives {
		if d.name.text == "bind" {
			return "", mistake(d.name, "bind limits where CoreDNS listens, and local names fall through by 127.0.0.1; remove it, or let strait itself answer (dns.fallThrough)")
		}
	}
	d := b.kubernetes()
	local := b.ownZone(zone)
	if local == "" {
		return "", mistake(d.name, "the plugin kubernetes has no zone of its own, such as cluster.local; add it first")
	}
	var edits []edit
	if !b.forwards(local) {
		edits = append(edits, b.addForward(text, local))
	}
	if !fallsThrough(*d, local) {
		edits = append(edits, addOption(text, *d, "fallthrough", "svc."+local)...)
	}
	if relayOf(blocks, zone) == nil {
		edits = append(edits, addRelay(text, local, zone, b.port()))
	}
	return apply(text, edits), nil
}

var domain = regexp.MustCompile(`^[a-z0-9-]+(\.[a-z0-9-]+)*$`)

// ownZone returns the first zone of the plugin kubernetes that has names of Services, but the
// clusterset's.
func (b block) ownZone(zone string) string {
	for _, t := range b.kubernetes().args {
		if z := zoneOf(t.text); domain.MatchString(z) && z != zone && !strings.HasSuffix(z, ".arpa") {
			return z
		}
	}
	return ""
}

// port returns the port on which the block is asked.
func (b block) port() string {
	if key := strings.TrimSuffix(b.keys[0].text, ","); !b.snippet() {
		if _, rest, ok := strings.Cut(key, "://"); ok {
			key = rest
		}
		if i := strings.LastIndexByte(key, ':'); i >= 0 {
			return key[i+1:]
		}
	}
	return "53"
}

// fallsThrough reports whether the plugin already passes local names on. Without zones, the option
// is for all.
func fallsThrough(d directive, local string) bool {
	for _, o := range d.body {
		if o.name.text == "fallthrough" {
			return len(o.args) == 0 || has(o.args, "svc."+local) || has(o.args, local)
		}
	}
	return false
}

// isForward reports whether the directive forwards local names to the relay.
func (d directive) isForward(local string) bool {
	return d.name.text == "forward" && len(d.args) == 2 && d.args[0].text == "svc."+local && d.args[1].text == loopback+":"+relayPort
}

func (b block) forwards(local string) bool {
	for _, d := range b.directives {
		if d.isForward(local) {
			return true
		}
	}
	return false
}

// addForward forwards local names to the relay. CoreDNS asks the first plugin forward whose zone
// fits, so it comes before the others.
func (b block) addForward(text, local string) edit {
	at := b.kubernetes().name.start
	for _, d := range b.directives {
		if d.name.text == "forward" {
			at = d.name.start
			break
		}
	}
	return edit{at, at, fmt.Sprintf("forward svc.%s %s:%s\n%s", local, loopback, relayPort, indent(text, at))}
}

// addRelay adds the server block at the end.
func addRelay(text, local, zone, port string) edit {
	relay := fmt.Sprintf(`svc.%s:%s {
    bind %s
    errors
    rewrite name suffix .svc.%s. .svc.%s. answer auto
    forward . %s:%s
}`, local, relayPort, loopback, local, zone, loopback, port)
	if strings.HasSuffix(text, "\n") {
		relay += "\n"
	} else {
		relay = "\n" + relay
	}
	return edit{len(text), len(text), relay}
}

// relayOf returns the server block that addRelay added; nil if there is none.
func relayOf(blocks []block, zone string) *block {
	for i, b := range blocks {
		local, ours := strings.CutSuffix(strings.TrimPrefix(b.keys[0].text, "svc."), ":"+relayPort)
		if !ours || len(b.keys) != 1 {
			continue
		}
		for _, d := range b.directives {
			if d.name.text == "rewrite" && len(d.args) > 3 && d.args[2].text == ".svc."+local+"." && d.args[3].text == ".svc."+zone+"." {
				return &blocks[i]
			}
		}
	}
	return nil
}

// removeFallThrough undoes AddFallThrough. The server block has the local zone that it was for.
func removeFallThrough(text, zone string) (string, error) {
	blocks, err := parse(text)
	if err != nil {
		return "", err
	}
	relay := relayOf(blocks, zone)
	if relay == nil {
		return text, nil
	}
	local := strings.TrimSuffix(strings.TrimPrefix(relay.keys[0].text, "svc."), ":"+relayPort)
	edits := []edit{cutBlock(text, *relay)}
	for _, b := range blocks {
		for _, d := range b.directives {
			switch {
			case d.isForward(local):
				edits = append(edits, cutForward(text, d))
			case d.name.text == "kubernetes":
				edits = append(edits, removeOption(text, d, "fallthrough", "svc."+local)...)
			}
		}
	}
	return apply(text, edits), nil
}

// cutBlock removes a block with the line break after it, or the one before it at the end of the
// text.
func cutBlock(text string, b block) edit {
	start, end := b.keys[0].start, b.shut.end
	switch {
	case strings.HasPrefix(text[end:], "\n"):
		end++
	case strings.HasSuffix(text[:start], "\n"):
		start--
	}
	return edit{start, end, ""}
}

// cutForward undoes addForward: the next directive takes the place of this one.
func cutForward(text string, d directive) edit {
	start, end := d.name.start, d.args[len(d.args)-1].end
	if next := lineEnd(text, end); strings.TrimSpace(text[end:next]) == "" && next > end {
		for end = next; end < len(text) && (text[end] == ' ' || text[end] == '\t'); end++ {
		}
	}
	return edit{start, end, ""}
}
