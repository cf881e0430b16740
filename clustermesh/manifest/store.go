package manifest

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/object"
)

// content is what reading a file gave: bytes, or why there are none.
type content struct {
	data []byte
	err  error
}

// file is one file of the directory: the objects in force and what is wrong with its present version.
type file struct {
	sum      [sha256.Size]byte
	objects  []any
	problems []clustermesh.Problem
	// good is true once a whole version was right; a wrong one never replaces it.
	good bool
}

// store holds the files by path. It decides which version of a file is in force.
type store map[string]*file

// update takes the directory as it now is. A file that is gone takes its objects with it.
//
// The unit of "last good version" is the file: while any of its documents is wrong, the last version in
// which none was stays in force as a whole. A file that never had one gives the documents that are right.
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
		f.reject([]clustermesh.Problem{{Object: "file", File: path, Message: c.err.Error(),
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
		f.problems = nil // just made, not yet written: no version to hold on to
		return true
	case len(c.data) == 0:
		// Writers truncate before they write; an empty file is a moment far more often than a wish.
		f.reject([]clustermesh.Problem{{Object: "file", File: path, Message: "is empty",
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

// reject records what is wrong with a version; rest are its documents that are right.
func (f *file) reject(problems []clustermesh.Problem, rest []any) {
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

// key is what makes two documents the same object.
type key struct{ kind, namespace, name string }

func (k key) String() string { return object.Name(k.kind, k.namespace, k.name) }

// local reads all files together, in the order of their paths. Of an object that is given twice the first
// counts.
func (s store) local() clustermesh.Local {
	var objs object.Objects
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
			insert(&objs, obj)
		}
	}
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
	return clustermesh.Problem{Object: k.String(), File: second,
		Message: fmt.Sprintf("%s: the first is used, this one is not", where), Try: "keep one of the two"}
}

func keyOf(obj any) key {
	meta := obj.(metav1.Object)
	return key{kindOf(obj), meta.GetNamespace(), meta.GetName()}
}

// kindOf does not trust TypeMeta: API clients leave it empty.
func kindOf(obj any) string {
	switch obj.(type) {
	case *corev1.Node:
		return "Node"
	case *corev1.Namespace:
		return "Namespace"
	case *corev1.Service:
		return "Service"
	case *discoveryv1.EndpointSlice:
		return "EndpointSlice"
	case *mcsv1beta1.ServiceExport:
		return "ServiceExport"
	}
	return ""
}

// insert sorts an object in. Namespaces are understood, so that files may hold them, and mean nothing yet.
func insert(objs *object.Objects, obj any) {
	switch o := obj.(type) {
	case *corev1.Node:
		objs.Nodes = append(objs.Nodes, o)
	case *corev1.Service:
		objs.Services = append(objs.Services, object.ServiceFrom(o))
	case *discoveryv1.EndpointSlice:
		objs.EndpointSlices = append(objs.EndpointSlices, object.SliceFrom(o))
	case *mcsv1beta1.ServiceExport:
		objs.Exports = append(objs.Exports, object.ExportFrom(o))
	}
}
