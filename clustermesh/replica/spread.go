package replica

import (
	"math"
	"slices"

	"strait.io/strait/clustermesh"
)

// fanOut returns how many of n peers to push news to. The rule is Corrosion's, with a larger
// minimum than random spreading needs.
func fanOut(n int) int {
	return max(3, int(math.Round(3*math.Log10(float64(n+1)))))
}

// spread sends a record that was written here: the whole record to a few peers, and its version to
// all others.
func (r *Replica) spread(e Entry) Output {
	out := Output{Changed: []clustermesh.Origin{e.Record.Origin}}
	n := min(fanOut(len(r.peers)), len(r.peers))
	snapshot := &Snapshot{Entries: []Entry{e}}
	for _, p := range r.peers[:n] {
		out.send(p, snapshot)
	}
	offer := &Announce{offersOf([]Entry{e})}
	for _, p := range r.peers[n:] {
		out.send(p, offer)
	}
	return out
}

// push passes news on to a few peers. Only the writer announces it to all others.
func (r *Replica) push(out *Output, from Peer, entries []Entry) {
	if len(entries) == 0 {
		return
	}
	snapshot := &Snapshot{Entries: entries}
	for _, p := range r.few(from, entries) {
		out.send(p, snapshot)
	}
}

// announce offers news to a few peers, which may have it already.
func (r *Replica) announce(out *Output, from Peer, entries []Entry) {
	if len(entries) == 0 {
		return
	}
	a := &Announce{offersOf(entries)}
	for _, p := range r.few(from, entries) {
		out.send(p, a)
	}
}

// few returns the peers that get news: not the peer that sent it, nor one that wrote all of it.
func (r *Replica) few(from Peer, news []Entry) []Peer {
	n := fanOut(len(r.peers))
	out := make([]Peer, 0, n)
	for _, p := range r.peers {
		others := slices.ContainsFunc(news, func(e Entry) bool { return e.Record.Origin != p })
		if p != from && others && len(out) < n {
			out = append(out, p)
		}
	}
	return out
}

func offersOf(entries []Entry) []Offer {
	offers := make([]Offer, len(entries))
	for i, e := range entries {
		offers[i] = Offer{Origin: e.Record.Origin, Version: e.version}
	}
	return offers
}
