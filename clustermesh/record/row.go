package record

import (
	"net/netip"

	"strait.io/strait/clustermesh"
)

// writers are the kinds of origins that may write a field.
type writers int

const (
	nodes writers = 1 << iota
	leaders
)

func (w writers) include(o clustermesh.Origin) bool {
	if o.Node == "" {
		return w&leaders != 0
	}
	return w&nodes != 0
}

// Key is what an element of a list is known by in its record. Elements with the same key belong
// together: a change concerns all of them.
type Key struct {
	Service clustermesh.ServiceName
	Origin  clustermesh.Origin
	Addr    netip.Addr
	// Name is a policy, a fingerprint, or the kind of an object.
	Name string
}

// kind is a row of the table, whatever the type of its field.
type kind interface {
	about() *heading
	// pointer returns a pointer to the field.
	pointer(*clustermesh.Content) any
	// complete reports whether the row has all parts. An incomplete one counts as none.
	complete() bool
	// clear empties the field, and reports whether anything was in it.
	clear(*clustermesh.Content) bool
	// sift leaves out what cannot be used.
	sift(*sifter, *clustermesh.Content)
	// share makes what repeats share memory.
	share(*pool, *clustermesh.Content)
	// object is the least size of an element in the encoding, in bytes; 0 unless elements are objects.
	object() int
	// admit leaves out what the origin may not claim.
	admit(Judge, *clustermesh.Content)
	// equal reports whether the field is the same in two contents.
	equal(a, b *clustermesh.Content) bool
	// reuse replaces the list of a source by an equal one of before.
	reuse(now, before *clustermesh.Local)
	// size is the number of elements, and cut leaves out those above a limit.
	size(*clustermesh.Content) int
	cut(j Judge, c *clustermesh.Content, most int)
}

// heading is what the rows of all kinds have.
type heading struct {
	by    writers
	quota Quota
	// name is the field's name in Problems, and number its number in the encoding. Both are from the
	// tags of the field.
	name   string
	number uint64
}

func (h *heading) about() *heading { return h }

// single is the row of a field that is not a list.
type single[F comparable] struct {
	heading
	of func(*clustermesh.Content) *F
	// usable returns the part of a value that can be used.
	usable func(*sifter, F) F
	// claim returns the part of a value that the origin may claim.
	claim func(Judge, F) F
	// same reports whether two values are equal.
	same func(a, b F) bool
}

func (r *single[F]) pointer(c *clustermesh.Content) any { return r.of(c) }

func (r *single[F]) complete() bool {
	return r.by != 0 && r.usable != nil && r.claim != nil && r.same != nil
}

func (r *single[F]) clear(c *clustermesh.Content) bool {
	var zero F
	value := r.of(c)
	had := *value != zero
	*value = zero
	return had
}

func (r *single[F]) sift(s *sifter, c *clustermesh.Content) {
	value := r.of(c)
	*value = r.usable(s, *value)
}

func (r *single[F]) share(*pool, *clustermesh.Content) {}

func (r *single[F]) object() int { return 0 }

func (r *single[F]) admit(j Judge, c *clustermesh.Content) {
	value := r.of(c)
	*value = r.claim(j, *value)
}

func (r *single[F]) equal(a, b *clustermesh.Content) bool { return r.same(*r.of(a), *r.of(b)) }

func (r *single[F]) reuse(_, _ *clustermesh.Local) {}

func (r *single[F]) size(*clustermesh.Content) int { return 0 }

func (r *single[F]) cut(Judge, *clustermesh.Content, int) {}
