package replica

import (
	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/topology"
)

// publishNews sends a record that was written here.
func (r *Replica) publishNews(e Entry) Output {
	out := Output{Changed: []clustermesh.Origin{e.Record.Origin}}
	r.spread(&out, topology.News{}, []Entry{e})
	return out
}

// spread sends news to the neighbours that the topology chooses.
func (r *Replica) spread(out *Output, news topology.News, entries []Entry) {
	if len(entries) == 0 {
		return
	}
	for _, e := range entries {
		news.Writers = append(news.Writers, e.Record.Origin)
	}
	to := r.topology.Spread(r.self, news, r.peers.list)
	snapshot := &Snapshot{Entries: entries}
	for _, p := range to.Records {
		out.send(p, snapshot)
	}
	offer := &Announce{offersOf(entries)}
	for _, p := range to.Offers {
		out.send(p, offer)
	}
}

func offersOf(entries []Entry) []Offer {
	offers := make([]Offer, len(entries))
	for i, e := range entries {
		offers[i] = Offer{Origin: e.Record.Origin, Version: e.version}
	}
	return offers
}
