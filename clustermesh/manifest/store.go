package manifest

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/object"
	"strait.io/strait/internal/problem"
)

// content is the result of reading a file: its bytes, or why there are none.
type content struct {
	data []byte
	err  error
}

// file is one file of the directory: the objects in force, and what is wrong with its current
// version.
type file struct {
	sum      [sha256.Size]byte
	objects  []Object
	problems []clustermesh.Problem
	// good is true once a version was valid as a whole. An invalid version never replaces it.
	good bool
}

// store holds the files by path. It decides which version of a file is in force.
type store map[string]*file

// update takes over the current contents of the directory. A file that is gone takes its objects
// with it.
//
// The unit of "last good version" is the file: while any of its documents is wrong, the last
// version without a wrong one stays in force as a whole. If a file never had such a version, its
// valid documents are used.
//
// It reports whether anything may have changed.
func (s store) update(now map[string]content) (news bool) {
	for path := range s {
		if _, ok := now[path]; !ok {
			delete(s, path)
			news = true
		}
	}
	for path, c := range now {
		if s[path] == nil {
			s[path] = &file{}
		}
		if s[path].update(path, c) {
			news = true
		}
	}
	return news
}

func (f *file) update(path string, c content) (news bool) {
	if c.err != nil {
		// Forget the sum: the same bytes, readable again, must clear this problem.
		f.sum = [sha256.Size]byte{}
		before := f.problems
		f.reject([]clustermesh.Problem{{Code: problem.FileUnreadable, Object: "file", File: path, Message: c.err.Error(),
			Try: "make it a readable file, or delete it"}}, nil)
		return !slices.Equal(before, f.problems)
	}
	sum := sha256.Sum256(c.data)
	if sum == f.sum {
		return false
	}
	f.sum = sum
	switch {
	case len(c.data) == 0 && len(f.objects) == 0:
		f.problems = nil // just created, not yet written: no version to keep
		return true
	case len(c.data) == 0:
		// Writers truncate before they write: an empty file is usually a transient state, and
		// seldom intended.
		f.reject([]clustermesh.Problem{{Code: problem.FileEmpty, Object: "file", File: path, Message: "is empty",
			Try: "delete the file to remove its objects"}}, nil)
		return true
	}
	objects, problems := Decode(path, c.data)
	if slices.ContainsFunc(problems, func(p clustermesh.Problem) bool { return !p.Warning }) {
		f.reject(problems, objects)
		return true
	}
	f.objects, f.problems, f.good = objects, problems, true
	return true
}

// reject records what is wrong with a version; rest are its valid documents.
func (f *file) reject(problems []clustermesh.Problem, rest []Object) {
	if !f.good && rest != nil {
		f.objects = rest
	}
	f.problems = slices.Clone(problems)
	for i := range f.problems {
		if p := &f.problems[i]; f.good && !p.Warning {
			p.Message += " (the file's last good version stays in force)"
		}
	}
}

// key identifies an object: documents with equal keys are the same object.
type key struct{ kind, namespace, name string }

func (k key) String() string { return object.Name(k.kind, k.namespace, k.name) }

// local reads all files together, in the order of their paths. If an object is given twice, the
// first counts.
func (s store) local(c object.Config) clustermesh.Local {
	c.ReadOnly = true
	objs := object.Objects{Config: c}
	var problems []clustermesh.Problem
	owner := map[key]string{}
	files := map[string]string{}
	for _, path := range slices.Sorted(maps.Keys(s)) {
		problems = append(problems, s[path].problems...)
		for _, obj := range s[path].objects {
			k := keyOf(obj)
			if first, twice := owner[k]; twice {
				problems = append(problems, duplicate(k, first, path))
				continue
			}
			owner[k], files[k.String()] = path, path
			objs.Insert(obj.Kept)
		}
	}
	objs.Unread = s.unread()
	local := object.Local(objs)
	for _, p := range local.Problems {
		if p.File == "" {
			p.File = files[p.Object]
		}
		problems = append(problems, p)
	}
	local.Problems = clustermesh.SortProblems(problems)
	return local
}

func duplicate(k key, first, second string) clustermesh.Problem {
	where := "also in " + first
	if first == second {
		where = "twice in this file"
	}
	return clustermesh.Problem{Code: problem.ObjectRepeated, Object: k.String(), File: second,
		Message: fmt.Sprintf("%s: the first is used, this one is not", where), Try: "keep one of the two"}
}

func keyOf(o Object) key { return key{o.Kind, o.GetNamespace(), o.GetName()} }
