package trustlevel

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
)

// listed are the text of authority.pinsFile and those of the files in authority.membersDir as one
// text, so that they come into force, and are saved, together.
type listed struct {
	Members map[string]string `json:"members"`
	Pins    string            `json:"pins,omitempty"`
}

// membersHead begins the text of listed. That of pins begins otherwise.
const membersHead = `{"members":`

// Listed returns one text of the pins and of members by the names of their files: without members
// that of the pins, and otherwise JSON, because files can have bytes that YAML cannot hold.
func Listed(pins string, members map[string]string) string {
	if len(members) == 0 {
		return pins
	}
	text, err := json.Marshal(listed{Members: members, Pins: pins})
	if err != nil {
		panic("write pins and members: " + err.Error()) // plain data
	}
	return string(text)
}

// read splits a text of Listed. HasMembers is false if it is that of pins.
func read(text string) (l listed, hasMembers bool, err error) {
	if !strings.HasPrefix(text, membersHead) {
		return listed{Pins: text}, false, nil
	}
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.DisallowUnknownFields()
	if err := d.Decode(&l); err != nil {
		return l, true, fmt.Errorf("read pins and members: %w", err)
	}
	return l, true, nil
}

// members reads the files, in their order.
func (l listed) members() (out []authority.Member, err error) {
	var errs []error
	from := map[clustermesh.ClusterName]string{}
	for _, file := range slices.Sorted(maps.Keys(l.Members)) {
		m, err := authority.ParseMember([]byte(l.Members[file]))
		if other, twice := from[m.Cluster]; err == nil && twice {
			err = fmt.Errorf("cluster: %s is in %s too: remove one of the two", m.Cluster, other)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", file, err))
			continue
		}
		from[m.Cluster] = file
		out = append(out, m)
	}
	return out, errors.Join(errs...)
}

// Pins returns the pins of a text of Listed. With members, these are the pins, and of the pins
// beside them only this cluster's own counts, if no member is this cluster. The keys that it
// revokes count in any case.
func Pins(text string, own clustermesh.ClusterName) (authority.Pins, error) {
	l, hasMembers, err := read(text)
	if err != nil {
		return nil, err
	}
	if !hasMembers {
		return authority.ParsePins([]byte(text))
	}
	all, err := l.members()
	pins := authority.Pins{}
	for _, m := range all {
		pins[m.Cluster] = m.Pin
	}
	if l.Pins == "" {
		return pins, err
	}
	beside, wrong := authority.ParsePins([]byte(l.Pins))
	if err := errors.Join(err, wrong); err != nil {
		return nil, err
	}
	mine, pinned := beside[own]
	if listed, is := pins[own]; is {
		for _, key := range mine.Revoked {
			if !slices.Contains(listed.Revoked, key) {
				listed.Revoked = append(slices.Clone(listed.Revoked), key)
			}
		}
		pins[own] = listed
	} else if pinned {
		pins[own] = mine
	}
	return pins, nil
}

// Seeds returns where the other members of a text of Listed are found.
func Seeds(text string, own clustermesh.ClusterName) (out []string) {
	l, _, err := read(text)
	if err != nil {
		return nil // it is not in force
	}
	all, _ := l.members()
	for _, m := range all {
		if m.Cluster != own {
			out = append(out, m.Seeds...)
		}
	}
	return out
}

// Lost returns an error if a text no longer has the members that the one in force has, and would so
// cut off all of them: a folder that is empty by mistake is no decision. Pins that list others are
// one.
func Lost(text, inForce string, pins authority.Pins) error {
	_, had, _ := read(inForce)
	if _, has, _ := read(text); has || !had || len(pins) > 1 {
		return nil
	}
	return errors.New("the other clusters are gone from authority.membersDir, all at once; to leave them, keep this cluster's own file there alone")
}

// Awaited reports whether a text has members, and not yet this cluster's own pin, which its leader
// makes.
func Awaited(text string, own clustermesh.ClusterName) bool {
	l, hasMembers, err := read(text)
	if err != nil || !hasMembers || l.Pins != "" {
		return false
	}
	all, err := l.members()
	return err == nil && !slices.ContainsFunc(all, func(m authority.Member) bool { return m.Cluster == own })
}
