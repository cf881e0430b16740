package gossip

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"time"

	"strait.io/strait/clustermesh"
)

const (
	uidsFile = "clusters.json"
	// uidLife is how long a cluster must not have been heard before another may have its name: it was built
	// anew, or nobody misses it.
	uidLife = time.Minute
)

// errOtherCluster means that a peer's cluster has the name of another.
var errOtherCluster = errors.New("another cluster has its name")

// uids remembers which cluster each name belongs to: the first that was heard with it, for as long as it is
// heard. Its lock is never held while others are taken: memberlist asks with its own held.
type uids struct {
	self clustermesh.ClusterName

	mu     sync.Mutex
	owners map[clustermesh.ClusterName]owner
	news   bool // since the last save
	moved  bool // a name has come to belong to a cluster, since last asked
}

type owner struct {
	uid   string
	heard time.Time
}

// newUIDs starts with what the last life knew; those clusters count as heard now.
func newUIDs(self clustermesh.ClusterName, uid string, last map[clustermesh.ClusterName]string, now time.Time) *uids {
	u := &uids{self: self, owners: map[clustermesh.ClusterName]owner{}, moved: true} // since the records were saved
	for c, id := range last {
		u.owners[c] = owner{id, now}
	}
	delete(u.owners, self)
	if uid != "" {
		u.owners[self] = owner{uid, now}
	}
	return u
}

// admit reports whether the name of a cluster belongs to the one with that UID; otherwise it returns the UID
// of the one that it belongs to. A name that is nobody's is taken. An empty UID matches every other.
func (u *uids) admit(c clustermesh.ClusterName, uid string, now time.Time) (other string, ok bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	o, owned := u.owners[c]
	switch {
	case uid == "":
		return "", true
	case owned && o.uid == uid:
		u.owners[c] = owner{uid, now}
		return "", true
	case owned && (c == u.self || now.Sub(o.heard) < uidLife):
		return o.uid, false
	case !owned && c == u.self:
		return "", true // we do not know our own: standalone
	}
	u.owners[c] = owner{uid, now}
	u.news, u.moved = true, true
	return "", true
}

// belongs reports whether a record that says to be of a cluster with that UID may be; otherwise it returns the UID of
// the one that has the name. That a third daemon passes it on says nothing of who is heard.
func (u *uids) belongs(c clustermesh.ClusterName, uid string) (other string, ok bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	o, owned := u.owners[c]
	return o.uid, uid == "" || !owned || o.uid == uid
}

// anew reports whether a name has come to belong to a cluster since it was last asked.
func (u *uids) anew() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	moved := u.moved
	u.moved = false
	return moved
}

// heard notes that members of a cluster are alive.
func (u *uids) heard(c clustermesh.ClusterName, now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if o, ok := u.owners[c]; ok {
		u.owners[c] = owner{o.uid, now}
	}
}

// unsaved returns what is known if that is news since it was last asked for.
func (u *uids) unsaved() (map[clustermesh.ClusterName]string, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.news {
		return nil, false
	}
	u.news = false
	out := map[clustermesh.ClusterName]string{}
	for c, o := range maps.All(u.owners) {
		out[c] = o.uid
	}
	return out, true
}

// unsave makes what is known news again: it could not be saved, or what is on disk cannot be read.
func (u *uids) unsave() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.news = true
}

// loadUIDs reads what saveUIDs wrote; nothing if there is none.
func loadUIDs(dir string) (out map[clustermesh.ClusterName]string, err error) {
	if dir == "" {
		return nil, nil
	}
	b, err := os.ReadFile(filepath.Join(dir, uidsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &out)
	}
	if err != nil {
		return nil, fmt.Errorf("read the clusters' UIDs: %w", err)
	}
	return out, nil
}

func saveUIDs(dir string, all map[clustermesh.ClusterName]string) error {
	b, err := json.Marshal(all)
	if err != nil {
		return fmt.Errorf("write the clusters' UIDs: %w", err)
	}
	return replaceFile(dir, uidsFile, func(f *os.File) error {
		_, err := f.Write(b)
		return err
	})
}
