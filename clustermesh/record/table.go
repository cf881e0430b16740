package record

import (
	"reflect"
	"strconv"
	"strings"

	"strait.io/strait/clustermesh"
)

// table is all kinds of content, and the fields of a content that have no complete row.
type table struct {
	kinds  []kind
	strays []stray
}

// newTable returns the table of the rows. It gives each the name and number of its field.
func newTable(rows ...kind) *table {
	t := &table{}
	for _, k := range rows {
		if k.complete() {
			t.kinds = append(t.kinds, k)
		}
	}
	content := reflect.TypeFor[clustermesh.Content]()
	for i := range content.NumField() {
		f := content.Field(i)
		for _, k := range t.kinds {
			if offset(k) == f.Offset {
				k.about().name, k.about().number = name(f), number(f)
			}
		}
	}
	t.strays = strays(content, t.kinds)
	return t
}

// stray is a field without a row.
type stray struct {
	index int
	name  string
}

// strays returns the fields of a type, which is that of contents, that none of the rows describes.
func strays(content reflect.Type, rows []kind) (out []stray) {
	described := map[uintptr]bool{}
	for _, k := range rows {
		described[offset(k)] = true
	}
	for i := range content.NumField() {
		if f := content.Field(i); !described[f.Offset] {
			out = append(out, stray{i, name(f)})
		}
	}
	return out
}

// clearStrays empties fields of a content, and calls found with the name of each in which anything was.
func clearStrays(fields []stray, content reflect.Value, found func(field string)) {
	for _, s := range fields {
		if f := content.Field(s.index); !f.IsZero() {
			f.SetZero()
			found(s.name)
		}
	}
}

// refuse empties the fields that have no row: it is not known who may write them, nor what they may
// contain.
func (t *table) refuse(c *clustermesh.Content, found func(field string)) {
	if len(t.strays) > 0 {
		clearStrays(t.strays, reflect.ValueOf(c).Elem(), found)
	}
}

// Least returns the least sizes, in bytes, of the objects in a content's lists, by the number of the
// list in the encoding. A list whose objects are smaller means nothing.
func Least() map[uint64]int {
	out := map[uint64]int{}
	for _, k := range kinds.kinds {
		if n := k.object(); n > 0 {
			out[k.about().number] = n
		}
	}
	return out
}

// Equal reports whether two contents are the same. An empty list is the same as none.
func Equal(a, b *clustermesh.Content) bool {
	for _, k := range kinds.kinds {
		if !k.equal(a, b) {
			return false
		}
	}
	return true
}

// Reuse returns what a cluster's source says, with equal lists replaced by those that it said before.
// Most changes are of endpoints. So what a large cluster exports is in memory only once, and comparing
// both shows at once that these lists are the same.
func Reuse(now, before clustermesh.Local) clustermesh.Local {
	for _, k := range kinds.kinds {
		k.reuse(&now, &before)
	}
	if sameLists(now.ExportStatus, before.ExportStatus, identical) { // verdicts are in no record
		now.ExportStatus = before.ExportStatus
	}
	return now
}

// offset returns where in a content the field of a row is.
func offset(k kind) uintptr {
	c := new(clustermesh.Content)
	return reflect.ValueOf(k.pointer(c)).Pointer() - reflect.ValueOf(c).Pointer()
}

// name returns the name of a field in Problems.
func name(f reflect.StructField) string {
	if s, _, _ := strings.Cut(f.Tag.Get("json"), ","); s != "" && s != "-" {
		return s
	}
	return f.Name
}

// number returns the number of a field in the encoding; 0 if it is not encoded.
func number(f reflect.StructField) uint64 {
	s, _, _ := strings.Cut(f.Tag.Get("cbor"), ",")
	n, _ := strconv.ParseUint(s, 10, 64)
	return n
}
