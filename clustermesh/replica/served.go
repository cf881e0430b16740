package replica

import "strait.io/strait/clustermesh"

// Bounds on what one peer can cause between two ticks, though it is the node that it says: of how many
// origins of which nothing is held it is asked, how many of its questions are answered, and how many
// differences are tried after so many were wrong. Honest daemons stay far below.
const (
	maxNewAsks = 1 << 16
	maxAnswers = 64
	maxWrong   = 64
)

// served is what a peer caused since the last tick.
type served struct {
	asks, answers, wrong int
	// sent are the records that it was sent because it asked, or because an exchange showed that it
	// lacks them. Whoever asks for them again has them already, or soon.
	sent map[clustermesh.Origin]Version
	// lost is true if it has been sent some again, because what was in transit was lost.
	lost bool
}

// servedOf returns what a peer caused since the last tick, to be counted on.
func (r *Replica) servedOf(p Peer) *served {
	s := r.served[p]
	if s == nil {
		s = &served{sent: map[clustermesh.Origin]Version{}}
		r.served[p] = s
	}
	return s
}

// sendAgain has a peer sent what it was sent already. It does so once between two ticks: a peer can
// open streams as often as it likes.
func (r *Replica) sendAgain(p Peer) {
	if s := r.servedOf(p); !s.lost {
		s.lost = true
		clear(s.sent)
	}
}

// unsent returns which entries a peer was not sent yet, and notes that it is sent them.
func (r *Replica) unsent(to Peer, entries []Entry) (out []Entry) {
	s := r.servedOf(to)
	for _, e := range entries {
		if o := e.Record.Origin; s.sent[o] != e.version {
			s.sent[o] = e.version
			out = append(out, e)
		}
	}
	return out
}
