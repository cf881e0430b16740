package record

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"strait.io/strait/clustermesh"
)

// TestEveryFieldHasARow: a field of Content has one row, and a row says everything about its field.
func TestEveryFieldHasARow(t *testing.T) {
	content := reflect.TypeFor[clustermesh.Content]()
	names, numbers := map[string]bool{}, map[uint64]bool{}
	for _, k := range kinds.kinds {
		h := k.about()
		if h.name == "" || h.number == 0 || names[h.name] || numbers[h.number] {
			t.Errorf("the row of %q, field %d in the encoding, is none of a field, or the second", h.name, h.number)
		}
		names[h.name], numbers[h.number] = true, true
	}
	for _, s := range kinds.strays {
		t.Errorf("Content.%s has no complete row in kinds.go: it is refused", content.Field(s.index).Name)
	}
	if len(kinds.kinds) != content.NumField() {
		t.Errorf("%d rows for %d fields", len(kinds.kinds), content.NumField())
	}
}

// TestNewFieldIsRefused adds a field to Content, as its next author would.
func TestNewFieldIsRefused(t *testing.T) {
	fields := reflect.VisibleFields(reflect.TypeFor[clustermesh.Content]())
	wider := reflect.StructOf(append(fields, reflect.StructField{
		Name: "Secrets", Type: reflect.TypeFor[[]string](), Tag: `cbor:"99,keyasint,omitempty" json:"secrets,omitempty"`,
	}))
	found := strays(wider, kinds.kinds)
	if len(found) != 1 || found[0].name != "secrets" {
		t.Fatalf("without a row: %v, want secrets", found)
	}
	c := reflect.New(wider).Elem()
	c.FieldByName("Nodes").Set(reflect.ValueOf([]clustermesh.NodeName{"n1"}))
	var refused []string
	clearStrays(found, c, func(field string) { refused = append(refused, field) })
	if len(refused) > 0 {
		t.Errorf("refused although empty: %v", refused)
	}
	c.FieldByName("Secrets").Set(reflect.ValueOf([]string{"s"}))
	clearStrays(found, c, func(field string) { refused = append(refused, field) })
	if !slices.Equal(refused, []string{"secrets"}) || !c.FieldByName("Secrets").IsZero() || c.FieldByName("Nodes").Len() != 1 {
		t.Errorf("refused %v, left %+v", refused, c)
	}
}

// TestFieldWithoutRow takes each row away. Then no origin may write its field, or is admitted with it.
func TestFieldWithoutRow(t *testing.T) {
	each(t, func(without *table, name string, c clustermesh.Content) {
		for _, o := range []clustermesh.Origin{{Cluster: "c"}, {Cluster: "c", Node: "n"}} {
			got, problems, found := without.sift(o, c, 1)
			if j := (&strict{}); !reflect.DeepEqual(without.admit(j, c), clustermesh.Content{}) || !slices.Equal(j.noRule, []string{name}) {
				t.Errorf("%s: admitted is %+v, without a rule %v", name, without.admit(j, c), j.noRule)
			}
			if !reflect.DeepEqual(got, clustermesh.Content{}) || found != 1 || len(problems) != 1 || problems[0].Field != name || !strings.Contains(problems[0].Message, "no rule") {
				t.Errorf("%s of %s: left is %+v, Problems %v", name, o, got, problems)
			}
		}
	})
}

// each calls f for each row, with the table without it, and a content that has only its field.
func each(t *testing.T, f func(without *table, name string, c clustermesh.Content)) {
	t.Helper()
	for i, k := range kinds.kinds {
		without := newTable(slices.Concat(kinds.kinds[:i], kinds.kinds[i+1:])...)
		if len(without.strays) != 1 || without.strays[0].name != k.about().name {
			t.Fatalf("without %s: %v", k.about().name, without.strays)
		}
		var c clustermesh.Content
		field := reflect.ValueOf(&c).Elem().Field(without.strays[0].index)
		switch field.Kind() {
		case reflect.Slice:
			field.Set(reflect.MakeSlice(field.Type(), 1, 1))
		case reflect.Pointer:
			field.Set(reflect.New(field.Type().Elem()))
		default:
			field.SetInt(1)
		}
		f(without, k.about().name, c)
	}
}

// TestIncompleteRow: a row that does not say everything is none.
func TestIncompleteRow(t *testing.T) {
	row := list[clustermesh.Late]{of: func(c *clustermesh.Content) *[]clustermesh.Late { return &c.Late }}
	if n := len(newTable(&row).strays); n != reflect.TypeFor[clustermesh.Content]().NumField() {
		t.Errorf("%d fields are refused", n)
	}
}

// TestWriters: who may not write a field has it left out, with a Problem.
func TestWriters(t *testing.T) {
	const node, leader = "node silent gossipKeys", "exports mirrors globals drain drains allocations late revoked withdrawn results config nodes asOf"
	refused := map[string][]string{}
	each(t, func(_ *table, name string, c clustermesh.Content) {
		for what, o := range map[string]clustermesh.Origin{"leader": {Cluster: "c"}, "node": {Cluster: "c", Node: "n"}} {
			_, problems := Usable(o, c)
			if slices.ContainsFunc(problems, func(p clustermesh.Problem) bool {
				return strings.Contains(p.Message, "kind of origin") && p.Field == name
			}) {
				refused[what] = append(refused[what], name)
			}
		}
	})
	if got := strings.Join(refused["leader"], " "); got != node {
		t.Errorf("a leader must not write %s, want %s", got, node)
	}
	if got := strings.Join(refused["node"], " "); got != leader {
		t.Errorf("a node must not write %s, want %s", got, leader)
	}
}

// TestLeast: what is in a record is measured before it is decoded, by the numbers in the encoding.
func TestLeast(t *testing.T) {
	want := map[uint64]int{2: 15, 3: 12, 4: 15, 5: 10, 6: 9, 21: 12, 24: 3, 25: 12, 27: 3, 28: 16, 29: 8}
	if got := Least(); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestEqual: each field counts, and each element.
func TestEqual(t *testing.T) {
	var none clustermesh.Content
	each(t, func(_ *table, name string, c clustermesh.Content) {
		same, other := c, c
		for _, k := range kinds.kinds {
			if k.about().name != name {
				continue
			}
			field := reflect.ValueOf(k.pointer(&other)).Elem()
			if field.Kind() == reflect.Slice {
				field.Set(reflect.AppendSlice(field, field))
				if twice := other; Equal(&c, &twice) {
					t.Errorf("%s: two elements are as one", name)
				}
				field.Set(reflect.MakeSlice(field.Type(), 1, 1))
			}
		}
		if !Equal(&c, &same) || !Equal(&c, &other) || Equal(&c, &none) || Equal(&none, &c) {
			t.Errorf("%s does not count", name)
		}
	})
	a, b := clustermesh.Content{Exports: []clustermesh.Export{{Created: 1}}}, clustermesh.Content{Exports: []clustermesh.Export{{Created: 2}}}
	if empty := (clustermesh.Content{Exports: []clustermesh.Export{}}); Equal(&a, &b) || !Equal(&none, &empty) {
		t.Error("exports: an element does not count, or an empty list does")
	}
}
