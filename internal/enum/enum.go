// Package enum decodes settings that take one of a few names.
//
// Input is a text and the allowed names; output is the name, or an error that lists them. It must
// not know what the names mean.
package enum

import (
	"fmt"
	"slices"
	"strings"
)

// Decode sets *to to text, which must be one of allowed, or empty for the default. It is the body
// of an UnmarshalText.
func Decode[E ~string](to *E, text []byte, allowed ...E) error {
	e := E(text)
	if e != "" && !slices.Contains(allowed, e) {
		names := make([]string, 0, len(allowed))
		for _, a := range allowed {
			names = append(names, string(a))
		}
		return fmt.Errorf("%q is none of %s", text, strings.Join(names, ", "))
	}
	*to = e
	return nil
}
