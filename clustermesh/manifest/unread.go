package manifest

import "strings"

// unread returns whether an object, named as in Problems, may be in a document that cannot be read.
// Such a document is a Problem itself, so what is missing because of it should not be another.
func (s store) unread() func(name string) bool {
	named, nameless := map[string]bool{}, false
	for _, f := range s {
		for _, p := range f.problems {
			if p.Warning {
				continue // the object is used, or is none of strait's
			}
			if isNamed(p.Object) {
				named[p.Object] = true
			} else {
				nameless = true
			}
		}
	}
	return func(name string) bool { return nameless || named[name] }
}

// isNamed reports whether a Problem names its object. Otherwise it has only the place, such as a
// line of the file.
func isNamed(object string) bool {
	kind, name, _ := strings.Cut(object, " ")
	_, known := kinds[kind]
	return known && name != "" && !strings.Contains(name, " ")
}
