package sockdestroy

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestMounted(t *testing.T) {
	const mountinfo = `21 1 0:20 / /proc rw - proc proc rw
30 21 0:4 net:[4026532281] /run/netns/cni-1 rw shared:7 - nsfs nsfs rw
31 21 0:4 mnt:[4026532282] /run/docker/mnt rw - nsfs nsfs rw
32 21 0:4 net:[4026532283] /run/my\040ns rw - nsfs nsfs rw
33 21 0:40 net:[4026532284] /not/a/namespace rw - tmpfs tmpfs rw
broken line
`
	var got []string
	if err := mounted(strings.NewReader(mountinfo), func(inode uint64, point string) {
		got = append(got, fmt.Sprint(inode, " ", point))
	}); err != nil {
		t.Fatal(err)
	}
	if want := []string{"4026532281 /run/netns/cni-1", "4026532283 /run/my ns"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestInodeOf(t *testing.T) {
	for name, want := range map[string]uint64{"net:[4026531840]": 4026531840, "mnt:[4026531840]": 0, "net:[]": 0, "": 0} {
		if got, ok := inodeOf(name); got != want || ok != (want != 0) {
			t.Errorf("%q: got %d, %v; want %d", name, got, ok, want)
		}
	}
}
