package writer

import (
	"strconv"
	"unique"

	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// identity is which object it is, and which version of it. There is one for each object that a leader wrote: as strings they
// would be the most of its memory.
type identity struct {
	uid     uid
	version version
}

func identityOf(obj metav1.Object) identity {
	return identity{uidOf(obj.GetUID()), versionOf(obj.GetResourceVersion())}
}

// uid is a types.UID. API servers give UUIDs, but may give anything.
type uid struct {
	uuid  uuid.UUID
	other unique.Handle[types.UID] // of those that are no UUID
}

func uidOf(u types.UID) uid {
	id, err := uuid.Parse(string(u))
	switch {
	case u == "":
		return uid{}
	case err != nil || id == uuid.Nil || id.String() != string(u): // it can be written in several ways
		return uid{other: unique.Make(u)}
	}
	return uid{uuid: id}
}

func (u uid) UID() types.UID {
	switch {
	case u == uid{}:
		return ""
	case u.uuid == uuid.Nil:
		return u.other.Value()
	}
	return types.UID(u.uuid.String())
}

// version is a resource version. They are decimal numbers of any length; longer ones than those here no API server has.
type version struct {
	number uint64
	other  unique.Handle[string] // of those that are no such number
}

func versionOf(v string) version {
	n, err := strconv.ParseUint(v, 10, 64)
	switch {
	case v == "":
		return version{}
	case err != nil || n == 0 || strconv.FormatUint(n, 10) != v:
		return version{other: unique.Make(v)}
	}
	return version{number: n}
}

func (v version) String() string {
	switch {
	case v == version{}:
		return ""
	case v.number == 0:
		return v.other.Value()
	}
	return strconv.FormatUint(v.number, 10)
}

// newer compares resource versions of one kind. Versions that cannot be compared come from the watch in order.
func newer(a, b string) bool {
	c, err := resourceversion.CompareResourceVersion(a, b)
	return err != nil || c > 0
}
