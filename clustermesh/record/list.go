package record

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"

	"strait.io/strait/clustermesh"
)

// list is the row of a field that is a list.
type list[T any] struct {
	heading
	of  func(*clustermesh.Content) *[]T
	key func(*T) Key
	// local is the list in what the cluster's own source says; nil if it does not come from there.
	local func(*clustermesh.Local) *[]T
	// what is the kind of object that an element is in Problems, which name its Service, and part is
	// the field there. If what is empty, Problems name the record, and the place in the list.
	what, part string
	// most is how many elements count; 0 if there is no limit.
	most int
	// check returns an error unless an element can be used.
	check func(clustermesh.Origin, *T) error
	// usable replaces check where elements are not judged one by one, or parts of them are left out.
	usable func(*sifter, []T) []T
	// routing is the part of an element that is left out alone if it cannot be used; nil if there is
	// none.
	routing func(*T) **clustermesh.Routing
	// intern makes what elements repeat share memory; nil if it is not worth it.
	intern func(*pool, *T)
	// least is the least size in the encoding, in bytes, of an element that can be used; 0 unless it is
	// an object.
	least int
	// claim returns the elements, or the parts of them, that the origin may claim.
	claim func(Judge, *list[T], []T) []T
	// stay returns those that are left of too many; nil for the first.
	stay func(all []T, most int) []T
	// same reports whether two elements are equal.
	same func(a, b *T) bool
}

func (r *list[T]) pointer(c *clustermesh.Content) any { return r.of(c) }

func (r *list[T]) complete() bool {
	isText := reflect.TypeFor[T]().Kind() == reflect.String
	return r.by != 0 && r.key != nil && (r.check != nil || r.usable != nil) && r.claim != nil && r.same != nil && (r.least > 0 || isText)
}

func (r *list[T]) clear(c *clustermesh.Content) bool {
	value := r.of(c)
	had := len(*value) > 0
	*value = nil
	return had
}

func (r *list[T]) sift(s *sifter, c *clustermesh.Content) {
	value := r.of(c)
	given := *value
	if r.most > 0 {
		given = given[:min(len(given), r.most)]
	}
	if r.usable != nil {
		*value = r.usable(s, given)
		return
	}
	given = keep(s, given, func(i int) bool {
		err := r.check(s.origin, &given[i])
		return err == nil || r.fault(s, given, i, "", err)
	})
	*value = r.routed(s, given)
}

func (r *list[T]) share(p *pool, c *clustermesh.Content) {
	if r.intern == nil {
		return
	}
	all := *r.of(c)
	for i := range all {
		r.intern(p, &all[i])
	}
}

func (r *list[T]) object() int { return r.least }

func (r *list[T]) admit(j Judge, c *clustermesh.Content) {
	value := r.of(c)
	*value = r.claim(j, r, *value)
}

func (r *list[T]) equal(a, b *clustermesh.Content) bool {
	return sameLists(*r.of(a), *r.of(b), r.same)
}

func (r *list[T]) reuse(now, before *clustermesh.Local) {
	if r.local == nil {
		return
	}
	if all := r.local(now); sameLists(*all, *r.local(before), r.same) {
		*all = *r.local(before)
	}
}

func (r *list[T]) size(c *clustermesh.Content) int { return len(*r.of(c)) }

func (r *list[T]) cut(j Judge, c *clustermesh.Content, most int) {
	value := r.of(c)
	has := len(*value)
	switch {
	case r.stay != nil:
		*value = r.stay(*value, most)
	case has > most:
		*value = (*value)[:most:most]
	}
	if has > most {
		j.TooMany(r.name, has, most)
	}
}

// fault records that an element, or a part of it, cannot be used, and returns false.
func (r *list[T]) fault(s *sifter, all []T, i int, part string, err error) bool {
	if r.what == "" {
		return s.checked(s.record(), at(r.name, i), err)
	}
	return s.checked(r.what+" "+s.of(r.key(&all[i]).Service), cmp.Or(part, r.part), err)
}

// routed leaves out routing that cannot be used. The elements stay.
func (r *list[T]) routed(s *sifter, all []T) []T {
	if r.routing == nil {
		return all
	}
	cloned := false
	for i := range all {
		err := (*r.routing(&all[i])).Check()
		if err == nil || r.fault(s, all, i, "routing", err) {
			continue
		}
		if !cloned {
			all, cloned = slices.Clone(all), true
		}
		*r.routing(&all[i]) = nil
	}
	return all
}

// checked is the check of elements that have a method for it.
func checked[T interface{ Check() error }](_ clustermesh.Origin, e *T) error { return (*e).Check() }

// equal compares elements by their method Equal, and identical by ==.
func equal[T interface{ Equal(T) bool }](a, b *T) bool { return (*a).Equal(*b) }

func identical[T comparable](a, b *T) bool { return *a == *b }

// sameLists reports whether two lists have the same elements. It is quick if they are one list.
func sameLists[T any](x, y []T, same func(a, b *T) bool) bool {
	if len(x) != len(y) || len(x) == 0 || &x[0] == &y[0] {
		return len(x) == len(y)
	}
	for i := range x {
		if !same(&x[i], &y[i]) {
			return false
		}
	}
	return true
}

func at(field string, i int) string { return fmt.Sprintf("%s[%d]", field, i) }
