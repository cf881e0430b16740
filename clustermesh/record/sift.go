package record

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/problem"
)

// maxUnusable bounds the Problems of one record.
const maxUnusable = 8

// Usable returns the valid part of a content, and a Problem for each object that is left out: a
// record must not vanish because of one bad prefix. If all of the content is valid, Usable returns
// it as it is. It never changes its argument.
func Usable(o clustermesh.Origin, c clustermesh.Content) (clustermesh.Content, []clustermesh.Problem) {
	c, problems, _ := Sift(o, c, math.MaxInt)
	return c, problems
}

// Sift is Usable for what comes from outside: it gives up once it has found more than so many faults, for
// each costs as much as some hundred bytes. It returns how many it found. If they are too many, its other
// results mean nothing.
func Sift(o clustermesh.Origin, c clustermesh.Content, most int) (clustermesh.Content, []clustermesh.Problem, int) {
	return kinds.sift(o, c, most)
}

// sift walks the rows: first over who may write what, then over what can be used.
func (t *table) sift(o clustermesh.Origin, c clustermesh.Content, most int) (clustermesh.Content, []clustermesh.Problem, int) {
	s := &sifter{origin: o, most: most}
	t.refuse(&c, func(field string) { s.fault(s.record(), field, "strait has no rule for this field", "report a bug") })
	for _, k := range t.kinds {
		if h := k.about(); !h.by.include(o) && k.clear(&c) {
			s.checked(s.record(), h.name, errors.New("this kind of origin must not write it"))
		}
	}
	for _, k := range t.kinds {
		k.sift(s, &c)
	}
	if s.more > 0 {
		s.problems = append(s.problems, clustermesh.Problem{
			Code:   problem.RecordPartLeftOut,
			Object: s.record(), Message: fmt.Sprintf("%d more of its objects cannot be used: left out", s.more), Try: s.try(),
		})
	}
	return c, s.problems, s.found
}

// sifter collects the Problems of one content.
type sifter struct {
	origin   clustermesh.Origin
	problems []clustermesh.Problem
	more     int // Problems beyond the bound
	// found counts the faults. Above most, nothing more is looked at.
	found, most int
}

// record is how Problems name the record as a whole.
func (s *sifter) record() string { return "record " + s.origin.String() }

func (s *sifter) full() bool { return s.found > s.most }

func (s *sifter) try() string {
	return fmt.Sprintf("correct it in cluster %s; the rest is in force", s.origin.Cluster)
}

// checked reports whether err is nil. If not, it records a Problem.
func (s *sifter) checked(object, field string, err error) bool {
	if err == nil {
		return true
	}
	s.fault(object, field, err.Error(), s.try())
	return false
}

func (s *sifter) fault(object, field, message, try string) {
	s.found++
	if len(s.problems) == maxUnusable {
		s.more++
		return
	}
	s.problems = append(s.problems, clustermesh.Problem{Code: problem.RecordPartLeftOut, Object: object, Field: field, Message: message + ": left out", Try: try})
}

// of returns how Problems name a Service of the origin's cluster.
func (s *sifter) of(service clustermesh.ServiceName) string {
	name := service.String()
	if service.Check() != nil {
		name = clustermesh.Quoted(name)
	}
	return name + " of cluster " + string(s.origin.Cluster)
}

// keep returns the elements whose index passes, or the list itself if all of them do.
func keep[T any](s *sifter, all []T, pass func(i int) bool) []T {
	var out []T
	dropped := false
	for i := range all {
		if s.full() {
			return nil
		}
		ok := pass(i)
		if !ok && !dropped {
			dropped, out = true, slices.Clone(all[:i])
		}
		if ok && dropped {
			out = append(out, all[i])
		}
	}
	if !dropped {
		return all
	}
	return out
}
