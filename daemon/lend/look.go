package lend

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"strait.io/strait/internal/keyfile"
)

const (
	// Stale is how old the last sign of life of a lender may be. One that was killed leaves its files
	// behind; the API server refuses its token as soon as the pod is gone.
	Stale = 30 * time.Second
	// behind is how much older one lender's sign of life may be than another's, for both to be equal.
	behind = 5 * time.Second
)

// Loan is what a lender lends; the zero value is none.
type Loan struct {
	// From is the name of the lender.
	From string
	// Token is for the API server. Root is the private root key of the cluster, as text; empty if none
	// is lent.
	Token, Root string
}

// String implements fmt.Stringer, so that a secret is never printed by accident.
func (l Loan) String() string { return "loan of " + cmp.Or(l.From, "no pod") }

// GoString implements fmt.GoStringer.
func (l Loan) GoString() string { return l.String() }

// LogValue implements slog.LogValuer.
func (l Loan) LogValue() slog.Value { return slog.StringValue(l.String()) }

// sign is a lender's directory.
type sign struct {
	name  string
	alive bool      // it has given a sign of life
	at    time.Time // the last one, or else when the directory was made
}

// choose returns the lenders that live, the best first, and those that are gone. Equal ones are in the
// order of their names, so that the choice does not change with each sign of life. It is pure.
func choose(all []sign, now time.Time) (live, gone []string) {
	var newest time.Time
	old := func(s sign) bool { age := now.Sub(s.at); return age > Stale || age < -Stale }
	for _, s := range all {
		switch {
		case old(s):
			gone = append(gone, s.name)
		case s.alive && s.at.After(newest):
			newest = s.at
		}
	}
	all = slices.DeleteFunc(slices.Clone(all), func(s sign) bool { return old(s) || !s.alive })
	late := func(s sign) int {
		if newest.Sub(s.at) > behind {
			return 1
		}
		return 0
	}
	slices.SortFunc(all, func(a, b sign) int { return cmp.Or(cmp.Compare(late(a), late(b)), cmp.Compare(a.name, b.name)) })
	for _, s := range all {
		live = append(live, s.name)
	}
	return live, gone
}

// Look returns what is lent in a directory now, and removes what lenders left that are gone.
func Look(dir string, now time.Time) (Loan, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return Loan{}, nil
	}
	if err != nil {
		return Loan{}, fmt.Errorf("read what is lent: %w", err)
	}
	var all []sign
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		s := sign{name: e.Name()}
		st, err := os.Stat(filepath.Join(dir, e.Name(), aliveFile))
		if s.alive = err == nil; err != nil {
			st, err = e.Info()
		}
		if err == nil { // otherwise the lender has just taken it away
			s.at = st.ModTime()
			all = append(all, s)
		}
	}
	live, gone := choose(all, now)
	var errs []error
	for _, name := range gone {
		errs = append(errs, remove(filepath.Join(dir, name)))
	}
	for _, name := range live {
		l, err := read(dir, name)
		if err == nil {
			return l, errors.Join(errs...)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return Loan{}, errors.Join(errs...)
}

func read(dir, name string) (l Loan, err error) {
	l.From = name
	if l.Token, err = readToken(filepath.Join(dir, name, tokenFile)); err != nil {
		return Loan{}, err
	}
	l.Root, err = keyfile.Read(filepath.Join(dir, name, rootFile), keyfile.AnyOther)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Loan{}, err
	}
	return l, nil
}

// maxToken bounds a token, in bytes. Those of the API server have about one thousand.
const maxToken = 64 << 10

// readToken returns the text of a token.
func readToken(path string) (string, error) {
	st, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if st.Mode().Perm()&os.FileMode(keyfile.AnyOther) != 0 || st.Size() > maxToken {
		return "", fmt.Errorf("%s has mode %04o and %d bytes: it is no token that was lent", path, st.Mode().Perm(), st.Size())
	}
	b, err := os.ReadFile(path)
	return strings.TrimSpace(string(b)), err
}
