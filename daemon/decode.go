package daemon

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strings"
)

// mistakes collects the errors in a Config, each with the path of its field.
type mistakes struct {
	errs []error
	// unread are the fields whose values do not decode. Their errors already name what is expected,
	// so add ignores further ones.
	unread map[string]bool
}

func (m *mistakes) add(field, format string, args ...any) {
	if !m.unread[field] {
		m.errs = append(m.errs, fmt.Errorf("%s: %s", field, fmt.Sprintf(format, args...)))
	}
}

// refuse adds an error for a value that does not decode.
func (m *mistakes) refuse(field, format string, args ...any) {
	m.add(field, format, args...)
	if m.unread == nil {
		m.unread = map[string]bool{}
	}
	m.unread[field] = true
}

func (m *mistakes) err() error { return errors.Join(m.errs...) }

// decode fills v from JSON, field by field. encoding/json would stop at the first value that does
// not decode, and hide later mistakes.
func (m *mistakes) decode(path string, raw json.RawMessage, v reflect.Value) {
	into := v.Addr().Interface()
	text, isText := into.(encoding.TextUnmarshaler)
	switch {
	case string(raw) == "null": // as if the field were absent
	case isText:
		s := textOf(raw)
		if err := text.UnmarshalText([]byte(s)); err != nil {
			m.refuse(path, "%s", wanted(into, s, err))
		}
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		m.decode(path, raw, v.Elem())
	case v.Kind() == reflect.Struct:
		m.decodeStruct(path, raw, v)
	case v.Kind() == reflect.Slice:
		var items []json.RawMessage
		if json.Unmarshal(raw, &items) != nil {
			m.refuse(path, "%s is not a list", raw)
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), len(items), len(items)))
		for i, item := range items {
			m.decode(fmt.Sprintf("%s[%d]", path, i), item, v.Index(i))
		}
	case json.Unmarshal(raw, into) != nil:
		m.refuse(path, "%s is not %s", raw, nameOf(v.Kind()))
	}
}

func (m *mistakes) decodeStruct(path string, raw json.RawMessage, v reflect.Value) {
	var values map[string]json.RawMessage
	if json.Unmarshal(raw, &values) != nil {
		m.refuse(path, "%s is not a mapping of fields", raw)
		return
	}
	below := func(name string) string { return strings.TrimPrefix(path+"."+name, ".") }
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if value, is := values[name]; is {
			m.decode(below(name), value, v.Field(i))
			delete(values, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		m.errs = append(m.errs, fmt.Errorf("unknown field %q", below(name)))
	}
}

// textOf returns the text that a JSON value had in YAML. There, an unquoted off becomes false and
// an unquoted on becomes true.
func textOf(raw json.RawMessage) string {
	var s string
	switch {
	case json.Unmarshal(raw, &s) == nil:
		return s
	case string(raw) == "false":
		return "off"
	case string(raw) == "true":
		return "on"
	}
	return string(raw)
}

// wanted returns what a text should look like. The errors of package netip give no example.
func wanted(into any, text string, err error) string {
	switch into.(type) {
	case *netip.AddrPort:
		return fmt.Sprintf("%q is not an address and port, as in 10.0.0.1:7946 or [fd00::1]:7946", text)
	case *netip.Prefix:
		return fmt.Sprintf("%q is not a CIDR, as in 241.0.0.0/8 or fd00:5354::/64", text)
	}
	return err.Error()
}

// nameOf describes the JSON values that decode into a kind.
func nameOf(k reflect.Kind) string {
	switch k {
	case reflect.String:
		return "a string: put it in quotes"
	case reflect.Bool:
		return "true or false"
	case reflect.Uint16:
		return "a whole number from 0 to 65535"
	case reflect.Uint32:
		return "a whole number from 0 to 4294967295"
	case reflect.Float64:
		return "a number"
	case reflect.Map:
		return "a mapping of clusters, as in {us-east: {us-west: 2}}"
	default:
		return "a whole number"
	}
}
