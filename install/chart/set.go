package chart

import (
	"fmt"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// Read merges values: documents first, each over the one before, then settings as in `helm --set`:
// a.b=c,d={e,f}. Nulls stay, and remove a value when the result is merged over others. As in Helm,
// commas and dots in a name or value are written \, and \. (escaped). Unlike in Helm, a value that is
// text in the chart stays text: cluster=1 names a cluster.
func Read(documents [][]byte, settings []string) (Values, error) {
	merged := Values{}
	for _, d := range documents {
		var v map[string]any
		if err := yaml.UnmarshalStrict(d, &v); err != nil {
			return nil, fmt.Errorf("read values: %w", err)
		}
		merged = gather(merged, v)
	}
	c, err := load(nil, nil)
	if err != nil {
		return nil, fmt.Errorf("load chart: %w", err)
	}
	for _, s := range settings {
		for _, one := range cutAt(s, ',') {
			v, err := setting(one, c.values)
			if err != nil {
				return nil, fmt.Errorf("--set %s: %w", s, err)
			}
			merged = gather(merged, v)
		}
	}
	return merged, nil
}

// setting turns one a.b=c into a tree.
func setting(s string, defaults map[string]any) (map[string]any, error) {
	name, value, ok := strings.Cut(s, "=")
	if !ok || name == "" {
		return nil, fmt.Errorf("%q: want NAME=VALUE", s)
	}
	if strings.ContainsAny(name, "[]") {
		return nil, fmt.Errorf("%q: a single item of a list cannot be set; give the whole list as {a,b}, or a file with --values", name)
	}
	path := cutAt(name, '.')
	var have any = defaults
	for i := range path {
		path[i] = unescape(path[i])
		table, _ := have.(map[string]any)
		have = table[path[i]]
	}
	v := scalar(value)
	if _, isText := have.(string); isText && v != nil {
		v = unescape(value)
	} else if strings.HasPrefix(value, "{") && strings.HasSuffix(value, "}") {
		list := []any{}
		for _, item := range cutAt(value[1:len(value)-1], ',') {
			if item != "" {
				list = append(list, scalar(item))
			}
		}
		v = list
	}
	for i := len(path) - 1; i >= 0; i-- {
		v = map[string]any{path[i]: v}
	}
	return v.(map[string]any), nil
}

// scalar parses a value as Helm does: true, false, null or a whole number; everything else is text.
func scalar(s string) any {
	switch s {
	case "true", "false":
		return s == "true"
	case "null":
		return nil
	case "0":
		return int64(0)
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil && !strings.HasPrefix(s, "0") {
		return n
	}
	return unescape(s)
}

// cutAt splits at each separator that is outside braces and has no backslash before it.
func cutAt(s string, separator byte) (out []string) {
	depth, begin := 0, 0
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\':
			i++
		case s[i] == '{':
			depth++
		case s[i] == '}':
			depth--
		case s[i] == separator && depth == 0:
			out = append(out, s[begin:i])
			begin = i + 1
		}
	}
	return append(out, s[begin:])
}

// unescape removes the backslash of \x.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
