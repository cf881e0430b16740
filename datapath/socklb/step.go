package socklb

import "strait.io/strait/datapath"

// changes returns what to do so that the maps hold want, and whether want is known to be sorted.
//
// Plans are sorted, and share the lists of backends that have not changed. So if the last want is
// in force exactly, changes walks both in step and compares only those that differ. Otherwise it
// compares everything. It also does so if it gets the very same list again, because it could not
// see a change in it.
func (t *table) changes(want []datapath.Frontend, prune bool) (c change, sorted bool) {
	was := t.applied
	t.applied = nil // until want is in force
	if len(was) == 0 || datapath.SameList(was, want) {
		return t.diff(want, prune), false
	}
	differ, gone, sorted := step(was, want)
	if !sorted {
		return t.diff(want, prune), false
	}
	c = t.diff(differ, false)
	if prune {
		c.remove = gone
	}
	return c, true
}

// remember keeps want for the next step, if it is sorted and the maps hold it and nothing else. The
// caller has applied it without a problem.
func (t *table) remember(want []datapath.Frontend, sorted bool) {
	if len(want) == len(t.installed) && (sorted || ascending(want)) {
		t.applied = want
	}
}

// step walks two lists in step: was, which is sorted, and now. It returns the frontends of now that
// are new or may differ, and those of was that are gone. If now is not sorted, step stops and
// returns false.
func step(was, now []datapath.Frontend) (differ, gone []datapath.Frontend, sorted bool) {
	i := 0 // was[:i] is done; was[i], if any, comes after now[j-1]
	for j := range now {
		f := &now[j]
		if i == len(was) || was[i].Addr != f.Addr {
			if j > 0 && now[j-1].Addr.Compare(f.Addr) >= 0 {
				return nil, nil, false
			}
			for i < len(was) && was[i].Addr.Compare(f.Addr) < 0 {
				gone = append(gone, was[i])
				i++
			}
		}
		if i == len(was) || was[i].Addr != f.Addr {
			differ = append(differ, *f)
			continue
		}
		if !shared(&was[i], f) {
			differ = append(differ, *f)
		}
		i++
	}
	return differ, append(gone, was[i:]...), true
}

// shared reports whether two frontends of one address share all that they have. It does not look
// into lists.
func shared(a, b *datapath.Frontend) bool {
	return datapath.SameList(a.Backends, b.Backends) && a.AffinitySeconds == b.AffinitySeconds && a.Service == b.Service
}

// ascending reports whether frontends are sorted by address, each address once.
func ascending(fs []datapath.Frontend) bool {
	for i := range fs[min(1, len(fs)):] {
		if fs[i].Addr.Compare(fs[i+1].Addr) >= 0 {
			return false
		}
	}
	return true
}
