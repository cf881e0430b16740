package problem

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxText bounds each text of a Problem, in bytes: others choose names, and peers choose errors.
const maxText = 4096

// Clean returns the Problem as it may be shown and logged. Names and errors in it come from other clusters and
// from peers without proof, and must not control a terminal, begin a line, or fill the log.
func (p Problem) Clean() Problem {
	for _, s := range []*string{&p.Object, &p.Field, &p.File, &p.Message, &p.Try, &p.Ref.Kind, &p.Ref.Cluster, &p.Ref.Namespace, &p.Ref.Name} {
		*s = clean(*s)
	}
	return p
}

func clean(s string) string {
	if len(s) > maxText {
		s = strings.ToValidUTF8(s[:maxText], "") + "…"
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t': // errors that are joined
			return ' '
		case unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp) || r == utf8.RuneError:
			return '?'
		}
		return r
	}, s)
}
