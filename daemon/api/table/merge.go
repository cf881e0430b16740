package table

// Merged is an item of several lists, and which of them have it in this form, as indices.
type Merged[T any] struct {
	Item  T
	Lists []int
}

// Merge merges lists of what several daemons see. What looks the same in some of them, but for
// columns that move, is one item, and what differs is one for each way in which it does. Items of
// one name follow each other, in the order in which their names come first.
func (t Table[T]) Merge(lists [][]T, f Form) (out []Merged[T]) {
	type key struct{ name, still string }
	of := map[string][]*Merged[T]{}
	found := map[key]*Merged[T]{}
	var names []string
	for i, list := range lists {
		for _, item := range list {
			k := key{t.Name(item), t.Still(item, f)}
			if m := found[k]; m != nil {
				if m.Lists[len(m.Lists)-1] != i {
					m.Lists = append(m.Lists, i)
				}
				continue
			}
			if of[k.name] == nil {
				names = append(names, k.name)
			}
			found[k] = &Merged[T]{item, []int{i}}
			of[k.name] = append(of[k.name], found[k])
		}
	}
	for _, name := range names {
		for _, m := range of[name] {
			out = append(out, *m)
		}
	}
	return out
}
