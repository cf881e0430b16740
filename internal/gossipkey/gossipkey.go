// Package gossipkey holds the keys that the daemons of a clusterset share, and decides how one
// replaces another without a gap.
//
// Pure leaf: text in, keys and decisions out. It does not know where keys are stored or how they are
// used.
package gossipkey

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// Size is the length of a key in bytes.
const Size = 32

// Key is a gossip key. It never prints.
type Key [Size]byte

// Generate makes a key.
func Generate(random io.Reader) (k Key, err error) {
	if _, err := io.ReadFull(random, k[:]); err != nil {
		return Key{}, fmt.Errorf("read randomness: %w", err)
	}
	return k, nil
}

// String hides the key.
func (Key) String() string { return "…" }

// GoString hides the key.
func (Key) GoString() string { return "…" }

// Base64 returns the key as text.
func (k Key) Base64() string { return base64.StdEncoding.EncodeToString(k[:]) }

// Fingerprint returns a short hash of the key that is safe to show: enough to compare two keys, too
// little to guess one.
func (k Key) Fingerprint() string { return Fingerprint(k.Base64()) }

// Fingerprint returns that of a key in base64.
func Fingerprint(text string) string {
	sum := sha256.Sum256([]byte(strings.TrimSpace(text)))
	return hex.EncodeToString(sum[:4])
}

// Ring is the keys that a daemon accepts. It uses the first for what it sends. There are two while
// one replaces the other, and one otherwise.
type Ring []Key

// errText says what a ring is as text. It never contains the text.
var errText = errors.New("want 32 bytes in base64, or two lines of that while one key replaces another; make a key with: openssl rand -base64 32")

// Parse reads a ring: a key per line, in base64. Its errors never contain the input.
func Parse(text string) (Ring, error) {
	var r Ring
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		b, err := base64.StdEncoding.DecodeString(line)
		if err != nil || len(b) != Size || len(r) == 2 {
			return nil, errText
		}
		r = append(r, Key(b))
	}
	if len(r) == 2 && r[0] == r[1] {
		r = r[:1]
	}
	if len(r) == 0 {
		return nil, errText
	}
	return r, nil
}

// Text returns what Parse reads.
func (r Ring) Text() string {
	text := ""
	for _, k := range r {
		text += k.Base64() + "\n"
	}
	return text
}

// Fingerprints returns those of the keys, in their order.
func (r Ring) Fingerprints() (out []string) {
	for _, k := range r {
		out = append(out, k.Fingerprint())
	}
	return out
}

// Toward returns the ring that follows while next replaces the other key: first all accept both, then
// all use the next one, and then all accept only that. Each step may begin when every daemon has made
// the step before. The last ring is its own successor.
func (r Ring) Toward(next Key) Ring {
	switch {
	case len(r) == 1 && r[0] != next:
		return Ring{r[0], next}
	case len(r) == 2 && r[1] == next:
		return Ring{next, r[0]}
	}
	return Ring{next}
}

// Lagging returns the daemons that do not have this ring yet, sorted, of those that reported the
// fingerprints of theirs.
func (r Ring) Lagging(reported map[string][]string) (out []string) {
	want := r.Fingerprints()
	for _, daemon := range slices.Sorted(maps.Keys(reported)) {
		if !slices.Equal(reported[daemon], want) {
			out = append(out, daemon)
		}
	}
	return out
}
