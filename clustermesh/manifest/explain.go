package manifest

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/problem"
)

// The decoders report their findings only as text.
var (
	badField = regexp.MustCompile(`^(?:json: )?(unknown|duplicate) field "(.*)"$`)
	badType  = regexp.MustCompile(`cannot unmarshal (.+) into Go (?:struct field [^.]*\.(\S+)|value) of type (\S+)`)
	atLine   = regexp.MustCompile(`line (\d+): `)
	twice    = regexp.MustCompile(`key (".*") already set in map`)
)

// explain turns a decoding error into one Problem per finding.
func explain(object string, err error) (out []clustermesh.Problem) {
	for _, finding := range findings(err) {
		p := clustermesh.Problem{Code: problem.FieldType, Object: object}
		if m := badField.FindStringSubmatch(finding); m != nil {
			p.Field = m[2]
			p.Code, p.Message, p.Try = problem.FieldUnknown, "unknown field", "correct its name or remove it"
			if m[1] == "duplicate" {
				p.Message, p.Try = "given twice", "remove one of the two"
			}
		} else if m := badType.FindStringSubmatch(finding); m != nil {
			p.Field = m[2]
			p.Message = fmt.Sprintf("is %s, want %s", article(m[1]), plainType(m[3]))
			p.Try = "correct the value"
		} else {
			p.Message, p.Try = oneLine(finding), "correct the object"
		}
		out = append(out, p)
	}
	return out
}

// findings unpacks the strict decoder's list.
func findings(err error) (out []string) {
	if strict, ok := runtime.AsStrictDecodingError(err); ok {
		for _, e := range strict.Errors() {
			out = append(out, e.Error())
		}
		return out
	}
	for e := err; e != nil; e = errors.Unwrap(e) { // the innermost error is the plainest
		err = e
	}
	return []string{err.Error()}
}

// explainYAML turns a syntax error into Problems that count lines from the top of the file.
func explainYAML(doc document, err error) (out []clustermesh.Problem) {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	text = strings.TrimPrefix(text, "unmarshal errors:\n")
	for finding := range strings.SplitSeq(text, "\n") {
		finding = atLine.ReplaceAllStringFunc(finding, func(s string) string {
			n, _ := strconv.Atoi(atLine.FindStringSubmatch(s)[1])
			return fmt.Sprintf("line %d: ", n+doc.line-1)
		})
		p := clustermesh.Problem{Code: problem.NotYAML, Object: guess(doc), Message: oneLine(finding), Try: "correct the YAML"}
		if twice.MatchString(finding) {
			p.Message = twice.ReplaceAllString(p.Message, "key $1 is given twice")
			p.Try = "remove one of the two"
		}
		out = append(out, p)
	}
	return out
}

var guessLine = regexp.MustCompile(`(?m)^(kind|  name|  namespace):[ \t]*["']?([\w.-]+)`)

// guess names the object of a document that is not strict YAML: from a lenient reading or, if that
// fails too, from lines that look usual.
func guess(doc document) string {
	place := fmt.Sprintf("document at line %d", doc.line)
	if raw, err := yaml.YAMLToJSON(doc.data); err == nil {
		h, _ := readHeader(raw)
		return h.title(place)
	}
	h := header{}
	for _, m := range guessLine.FindAllSubmatch(doc.data, -1) {
		for key, to := range map[string]*string{"kind": &h.kind, "  name": &h.name, "  namespace": &h.namespace} {
			if string(m[1]) == key && *to == "" {
				*to = string(m[2])
			}
		}
	}
	return h.title(place)
}

// article turns "string", as JSON's decoder names a value, into "a string".
func article(value string) string {
	kind, _, _ := strings.Cut(value, " ")
	switch kind {
	case "object":
		return "a mapping"
	case "array":
		return "a list"
	case "bool":
		return "true or false"
	}
	return "a " + value
}

// plainType describes a Go type in the words of people who write YAML.
func plainType(goType string) string {
	switch t := strings.TrimLeft(goType, "*"); {
	case strings.HasPrefix(t, "[]"):
		return "a list"
	case strings.HasPrefix(t, "map["):
		return "a mapping"
	case strings.HasPrefix(t, "int"), strings.HasPrefix(t, "uint"):
		return "a whole number"
	case t == "bool":
		return "true or false"
	case t == "string" || strings.Contains(t, "Type") || strings.Contains(t, "Policy") || strings.Contains(t, "Protocol"):
		return "a string (quote it)"
	default:
		return "a mapping"
	}
}

// oneLine keeps a Problem on one line whatever the input holds.
func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > 300 {
		s = strings.ToValidUTF8(s[:300], "") + "…"
	}
	return s
}
