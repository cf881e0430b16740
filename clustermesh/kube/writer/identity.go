package writer

import (
	"strconv"
	"unique"

	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// identity identifies an object and its version. A leader keeps one for each object that it wrote:
// as strings, identities would be most of its memory.
type identity struct {
	uid     uid
	version version
}

func identityOf(obj metav1.Object) identity {
	return identity{uidOf(obj.GetUID()), versionOf(obj.GetResourceVersion())}
}

// uid is a types.UID in compact form. UIDs are UUIDs in practice, but any string is allowed.
type uid struct {
	uuid  uuid.UUID
	other unique.Handle[types.UID] // set if the UID is not a UUID
}

func uidOf(u types.UID) uid {
	id, err := uuid.Parse(string(u))
	switch {
	case u == "":
		return uid{}
	// A UUID can be written in several ways; only the usual one survives the conversion.
	case err != nil || id == uuid.Nil || id.String() != string(u):
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

// version is a resource version in compact form. Resource versions are decimal numbers of any
// length; those of real API servers fit into 64 bits.
type version struct {
	number uint64
	other  unique.Handle[string] // set if the version is not such a number
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

// newer reports whether resource version a is newer than b; both are of one kind. It is true if
// they cannot be compared, because the watch delivers versions in order.
func newer(a, b string) bool {
	c, err := resourceversion.CompareResourceVersion(a, b)
	return err != nil || c > 0
}
