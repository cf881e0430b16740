package node

import (
	"strings"
	"testing"

	"strait.io/strait/cli"
	"strait.io/strait/datapath"
)

// Programs in front of strait's only at the top of the cgroup tree are listed as such, not as a
// Problem.
func TestForeignAtTheTop(t *testing.T) {
	var b strings.Builder
	foreign(cli.Printer{W: &b}, []datapath.ForeignProgram{
		{Hook: "connect4", Name: "cil_sock4_connect", Path: "/sys/fs/cgroup", Order: datapath.Top},
		{Hook: "recvmsg4", Name: "cil_sock4_recvmsg", Path: "/sys/fs/cgroup", Order: datapath.Before},
	})
	const want = "2 programs of other software on the socket hooks: strait chooses before them, except for processes in no cgroup below " +
		"/sys/fs/cgroup (cil_sock4_connect on connect4, cil_sock4_recvmsg on recvmsg4)\n"
	if got := b.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
