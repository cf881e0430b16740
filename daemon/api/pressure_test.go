package api

import (
	"strings"
	"testing"

	"strait.io/strait/datapath"
	"strait.io/strait/internal/problem"
)

func TestMapProblem(t *testing.T) {
	for _, c := range []struct {
		name  string
		usage datapath.MapUsage
		want  string // "" is none
		warns bool
	}{
		{"room", datapath.MapUsage{Map: "m", Used: 79, Limit: 100}, "", false},
		{"nearly full", datapath.MapUsage{Map: "m", Used: 80, Limit: 100}, "map m: is 80 % full (80 of 100 entries)", true},
		{"never rounded up to full", datapath.MapUsage{Map: "m", Used: 999, Limit: 1000}, "map m: is 99 % full (999 of 1000 entries)", true},
		{"full", datapath.MapUsage{Map: "m", Used: 100, Limit: 100},
			"map m: is full (100 of 100 entries): existing entries stay in force, new ones do not fit", false},
		{"more than full", datapath.MapUsage{Map: "m", Used: 101, Limit: 100},
			"map m: is full (101 of 100 entries): existing entries stay in force, new ones do not fit", false},
		{"makes room by itself", datapath.MapUsage{Map: "m", Used: 100, Limit: 100, Soft: true}, "", false},
		{"no limit known", datapath.MapUsage{Map: "m", Used: 100}, "", false},
	} {
		p, found := mapProblem(c.usage)
		if found != (c.want != "") || found && (p.String() != c.want || p.Warning != c.warns || p.Try != "") {
			t.Errorf("%s: %v, %+v", c.name, found, p)
		}
	}
	if p, _ := mapProblem(datapath.MapUsage{Map: "m", Used: 1, Limit: 1, Setting: "bpf.maxThings"}); !strings.HasPrefix(p.Try, "raise bpf.maxThings, and run straitd cleanup") {
		t.Errorf("try %q", p.Try)
	}
}

// TestPressureOnce: a problem that the daemon reports of a map replaces the derived one, and an answer
// made of an answer reports nothing twice.
func TestPressureOnce(t *testing.T) {
	s := Status{Problems: []problem.Problem{problem.Named("map", "a").Problem(problem.Problem{Message: "is full: 3 frontends wait"})},
		Datapath: Datapath{Maps: []datapath.MapUsage{{Map: "a", Used: 1, Limit: 1}, {Map: "b", Used: 1, Limit: 1}, {Map: "c", Limit: 1}}}}
	once := NewStatusAnswer(s).Status
	twice := NewStatusAnswer(once).Status
	for _, got := range []Status{once, twice} {
		if len(got.Problems) != 2 || got.Problems[0].Message != "is full: 3 frontends wait" || got.Problems[1].Object != "map b" {
			t.Errorf("%+v", got.Problems)
		}
	}
	if len(s.Problems) != 1 {
		t.Error("the status given was changed")
	}
}

// TestForeignProgramsAhead: those that choose before strait are a warning, which names
// each program once. Those behind strait, and those that undo what they chose, are none.
func TestForeignProgramsAhead(t *testing.T) {
	behind := []datapath.ForeignProgram{{Hook: "connect4", Name: "behind", Order: datapath.After}, {Hook: "recvmsg4", Name: "undoes", Order: datapath.Before},
		{Hook: "connect6", Name: "in front where no pods are", Order: datapath.Top}}
	ahead := []datapath.ForeignProgram{{Hook: "connect4", Name: "cil_sock4_connect", Order: datapath.Before}, {Hook: "connect6", Order: datapath.Below},
		{Hook: "sendmsg4", Name: "cil_sock4_connect"}}
	if got := NewStatusAnswer(Status{Datapath: Datapath{Foreign: behind}}).Status.Problems; len(got) != 0 {
		t.Errorf("behind: %+v", got)
	}
	s := Status{Datapath: Datapath{Foreign: append(behind, ahead...)}}
	got := NewStatusAnswer(NewStatusAnswer(s).Status).Status.Problems
	want := "socket hooks: programs of other software run before strait's (cil_sock4_connect, one without a name): " +
		"if that software balances Services too, it decides about the addresses that it knows: ClusterIPs, and imports, by strait's EndpointSlices"
	if len(got) != 1 || got[0].Finding() != want || !got[0].Warning || got[0].Try == "" {
		t.Errorf("%+v", got)
	}
}
