package member

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"pgregory.net/rapid"

	"strait.io/strait/clustermesh"
)

func id(cluster, node string, boot int) ID {
	return ID{clustermesh.Origin{Cluster: clustermesh.ClusterName(cluster), Node: clustermesh.NodeName(node)}, uint64(boot)}
}

// flood has so many invented members ask for a seat, and returns how many get one.
func flood(r *Room, n int, now time.Time, name func(i int) ID) (seated int) {
	for i := range n {
		if r.Admit(name(i), now) {
			seated++
		}
	}
	return seated
}

// TestRoom: an attacker that invents members fills a bounded number of seats, and keeps no known node out.
func TestRoom(t *testing.T) {
	now := time.Now()
	clusters := func(i int) ID { return id(fmt.Sprintf("c%d", i), "n1", 1) }
	west := func(i int) ID { return id("west", fmt.Sprintf("x%d", i), 1) }
	lives := func(i int) ID { return id("west", "n1", i) }
	pinned := map[clustermesh.ClusterName]int{"west": 50}
	for _, c := range []struct {
		name   string
		quotas map[clustermesh.ClusterName]int
		invent func(i int) ID
		want   int
	}{
		{"clusters without pins", nil, clusters, maxUnknown},
		{"nodes without pins", nil, west, 100},
		{"clusters that are not pinned", pinned, clusters, maxUnpinned},
		{"nodes of a pinned cluster", pinned, west, 50},
		{"lives of a known node", pinned, lives, maxLives},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := NewRoom(100)
			r.SetQuotas(c.quotas)
			known := map[clustermesh.Origin]bool{id("west", "n1", 0).Origin: true, id("west", "n2", 0).Origin: true}
			r.Know(known)
			if got := flood(r, 30_000, now, c.invent); got != c.want {
				t.Errorf("%d of the invented members got a seat, want %d", got, c.want)
			}
			if !r.Admit(id("west", "n2", 7), now) {
				t.Error("a known node found no room")
			}
		})
	}
}

// TestRoomAgain: seats become free when members left or never came, and not while they are there.
func TestRoomAgain(t *testing.T) {
	now := time.Now()
	r := NewRoom(2)
	a, b, c := id("west", "a", 1), id("west", "b", 1), id("west", "c", 1)
	admit := func(m ID, want bool) {
		t.Helper()
		if got := r.Admit(m, now); got != want {
			t.Errorf("Admit(%s) = %t, want %t", m, got, want)
		}
	}
	admit(a, true)
	admit(b, true)
	r.Joined(a)
	now = now.Add(time.Minute)
	admit(c, false)
	now = now.Add(seatLife)
	admit(c, true) // b never came
	admit(b, false)
	admit(a, true) // it is a member
	r.Left(a, now)
	now = now.Add(seatLife / 2)
	admit(b, false)
	r.Know(map[clustermesh.Origin]bool{c.Origin: true}) // c's seat is no stranger's any more
	admit(b, true)
}

// TestRoomKnown: nodes that become known, and unknown again, take no seat twice.
func TestRoomKnown(t *testing.T) {
	now := time.Now()
	r := NewRoom(1)
	a := id("west", "a", 1)
	for range 3 {
		r.Admit(a, now)
		r.Know(map[clustermesh.Origin]bool{a.Origin: true})
		r.Left(a, now)
		now = now.Add(2 * seatLife)
		r.Admit(id("west", "b", int(now.Unix())), now)
		r.clear(now)
		r.Know(map[clustermesh.Origin]bool{a.Origin: false})
	}
	if r.lives[a.Origin] != 0 || r.unknown["west"] > 1 {
		t.Errorf("lives %v, unknown %v", r.lives, r.unknown)
	}
}

// TestRoomCounts: however members come, go, and become known or unknown, the counts are those of the
// seats.
func TestRoomCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, now := NewRoom(3), time.Unix(1000, 0)
		member := func() ID {
			return id(rapid.SampledFrom([]string{"west", "east"}).Draw(t, "cluster"), rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "node"), rapid.IntRange(1, 3).Draw(t, "boot"))
		}
		t.Repeat(map[string]func(*rapid.T){
			"admit": func(*rapid.T) { r.Admit(member(), now) },
			"left":  func(*rapid.T) { r.Left(member(), now) },
			"clear": func(*rapid.T) { now = now.Add(seatLife); r.clear(now) },
			"know": func(t *rapid.T) {
				r.Know(map[clustermesh.Origin]bool{member().Origin: rapid.Bool().Draw(t, "is"), member().Origin: rapid.Bool().Draw(t, "and")})
			},
			"quotas": func(t *rapid.T) {
				r.SetQuotas(rapid.SampledFrom([]map[clustermesh.ClusterName]int{nil, {"west": 2}}).Draw(t, "quotas"))
			},
			"": func(t *rapid.T) {
				unknown, strangers := map[clustermesh.ClusterName]int{}, 0
				for m := range r.seats {
					if r.known[m.Origin] {
						continue
					}
					unknown[m.Origin.Cluster]++
					if _, pinned := r.quotas[m.Origin.Cluster]; !pinned {
						strangers++
					}
				}
				if !maps.Equal(r.unknown, unknown) || r.strangers != strangers {
					t.Fatalf("unknown %v, strangers %d; want %v, %d", r.unknown, r.strangers, unknown, strangers)
				}
			},
		})
	})
}
