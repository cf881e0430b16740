package chart

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	template "github.com/DataDog/datadog-agent/pkg/template/text"
	"sigs.k8s.io/yaml"
)

// functions are the Helm template functions that the chart uses, with Helm's names, argument order
// and results; TestHelm compares them. Helm itself would make strait three times as large and link
// package testing into it.
func functions(t *template.Template, files chartFiles, apis []string) template.FuncMap {
	out := textFunctions()
	maps.Copy(out, template.FuncMap{
		"filesGlob": files.Glob,
		"filesGet":  files.Get,
		"apisHas":   func(api string) bool { return slices.Contains(apis, api) },
		"include": func(name string, data any) (string, error) {
			var b strings.Builder
			err := t.ExecuteTemplate(&b, name, data)
			return b.String(), err
		},
		"fail":   func(text string) (string, error) { return "", errors.New(text) },
		"toYaml": toYAML,
		"fromYaml": func(text string) (m map[string]any, err error) {
			err = yaml.Unmarshal([]byte(text), &m)
			return m, err
		},
		"toJson": func(v any) (string, error) {
			text, err := json.Marshal(v)
			return string(text), err
		},
		"default": func(otherwise any, v ...any) any {
			if len(v) == 0 || empty(v[0]) {
				return otherwise
			}
			return v[0]
		},
		"kindIs": func(kind string, v any) bool { return reflect.ValueOf(v).Kind().String() == kind },
		"int":    toInt,
		"list":   func(v ...any) []any { return v },
		"append": func(list []any, v any) []any { return append(slices.Clone(list), v) },
		"has": func(v any, list []any) bool {
			return slices.ContainsFunc(list, func(x any) bool { return reflect.DeepEqual(x, v) })
		},
		"ternary": func(yes, no any, which bool) any {
			if which {
				return yes
			}
			return no
		},
		"dict": dict,
		"set": func(m map[string]any, k string, v any) map[string]any {
			m[k] = v
			return m
		},
		"deepCopy":       func(m map[string]any) map[string]any { return merge(nil, m) },
		"mergeOverwrite": func(under, over map[string]any) map[string]any { return overwrite(under, over) },
	})
	return out
}

// textFunctions are those that only change text.
func textFunctions() template.FuncMap {
	return template.FuncMap{
		"nindent": func(n int, text string) string {
			pad := strings.Repeat(" ", n)
			return "\n" + pad + strings.ReplaceAll(text, "\n", "\n"+pad)
		},
		"quote":      func(v any) string { return strconv.Quote(fmt.Sprint(v)) },
		"squote":     func(v any) string { return "'" + fmt.Sprint(v) + "'" },
		"replace":    func(from, to, text string) string { return strings.ReplaceAll(text, from, to) },
		"trunc":      func(n int, text string) string { return text[:min(n, len(text))] },
		"trimSuffix": func(end, text string) string { return strings.TrimSuffix(text, end) },
		"sha256sum": func(text string) string {
			sum := sha256.Sum256([]byte(text))
			return hex.EncodeToString(sum[:])
		},
		"regexMatch": func(re, text string) bool {
			ok, _ := regexp.MatchString(re, text) // an invalid expression matches nothing
			return ok
		},
		"regexReplaceAll": func(re, text, by string) (string, error) {
			r, err := regexp.Compile(re)
			if err != nil {
				return "", err
			}
			return r.ReplaceAllString(text, by), nil
		},
		"regexQuoteMeta": regexp.QuoteMeta,
	}
}

func toYAML(v any) (string, error) {
	text, err := yaml.Marshal(v)
	return strings.TrimSuffix(string(text), "\n"), err
}

func toInt(v any) (int, error) {
	switch x := v.(type) {
	case int:
		return x, nil
	case int64:
		return int(x), nil
	case float64:
		return int(x), nil
	case string:
		return strconv.Atoi(x)
	}
	return 0, fmt.Errorf("%v is not a number", v)
}

func dict(pairs ...any) (map[string]any, error) {
	m := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		k, ok := pairs[i].(string)
		if !ok {
			return nil, fmt.Errorf("dict: %v is not a key", pairs[i])
		}
		m[k] = pairs[i+1]
	}
	return m, nil
}

func empty(v any) bool {
	truth, _ := template.IsTrue(v)
	return !truth
}

// merge combines two trees into a new one, in which over wins. A null in over removes a value.
func merge(under, over map[string]any) map[string]any { return combine(under, over, under != nil) }

// gather combines two trees like merge, but keeps the nulls of both, for a later merge.
func gather(under, over map[string]any) map[string]any { return combine(under, over, false) }

func combine(under, over map[string]any, drop bool) map[string]any {
	out := make(map[string]any, len(under)+len(over))
	for k, v := range under {
		if m, ok := v.(map[string]any); ok {
			v = combine(nil, m, false)
		}
		out[k] = v
	}
	for k, v := range over {
		m, isTable := v.(map[string]any)
		have, wasTable := out[k].(map[string]any)
		switch {
		case v == nil && drop:
			delete(out, k)
		case isTable && wasTable:
			out[k] = combine(have, m, drop)
		case isTable:
			out[k] = combine(nil, m, false)
		default:
			out[k] = v
		}
	}
	return out
}

// overwrite changes under, as Helm's function does.
func overwrite(under, over map[string]any) map[string]any {
	for k, v := range over {
		m, isTable := v.(map[string]any)
		if have, wasTable := under[k].(map[string]any); isTable && wasTable {
			v = overwrite(have, m)
		}
		under[k] = v
	}
	return under
}

// functionsForMethods replaces Helm's methods of .Files and .Capabilities by functions. The
// template package that is used here cannot call methods: one that can makes the linker keep every
// method of every type, which are 27 MB of client-go in the CLI.
var functionsForMethods = strings.NewReplacer("$.Files.", "files", ".Files.", "files", ".Capabilities.APIVersions.Has", "apisHas")

// chartFiles are the chart's files that templates can read.
type chartFiles map[string][]byte

// Glob returns the files whose paths match.
func (f chartFiles) Glob(pattern string) chartFiles {
	out := chartFiles{}
	for name, data := range f {
		if ok, err := path.Match(pattern, name); ok && err == nil {
			out[name] = data
		}
	}
	return out
}

// Get returns a file's text.
func (f chartFiles) Get(name string) string { return string(f[name]) }
