package replica

// asking is whom a replica that is not synced asks whether they hold the same. It asks one or two
// first, and the others only when it holds what these do, because otherwise each of them would send
// it everything.
type asking struct {
	waiting []Peer
	since   map[Peer]int // the tick in which they were asked
	// sure are those with which an exchange has completed, and which are synced themselves, and at
	// the first of them.
	sure map[Peer]bool
	at   int
}

const (
	// askFirst and askThen are how many are asked at once.
	askFirst, askThen = 2, 16
	// askTicks is after how many ticks the next one is asked if there is no answer.
	askTicks = 2
	// twoSure is how many synced peers must agree, where there are so many; after sureTicks, one is
	// enough.
	twoSure, sureTicks = 2, 3
)

func (a *asking) drop(p Peer) {
	delete(a.since, p)
	delete(a.sure, p)
}

// greeting is the Hello of a peer, and whether meet has looked at it.
type greeting struct {
	*Hello
	met bool
}

// meet looks at the Hello of a peer with which there is a stream. The lower one of two that know
// that they have everything opens an exchange.
func (r *Replica) meet(out *Output, p Peer) {
	h, said := r.hellos[p]
	if !said || h.met || !r.audit.whole[p] {
		return
	}
	r.hellos[p] = greeting{h.Hello, true}
	switch {
	case h.Sum == r.root():
		r.answered(h.Sender, true)
		r.agreed(p, h.Sender)
	case !r.synced:
		r.asking.waiting = append(r.asking.waiting, p)
		r.askNext(out)
	case h.Unsynced: // it opens one
	case r.self.Compare(p) < 0:
		out.send(p, r.sums())
	}
}

// askNext opens exchanges with those who wait for it, as many as may be open.
func (r *Replica) askNext(out *Output) {
	a := &r.asking
	most := askFirst
	if len(r.agree) > 0 {
		most = askThen
	}
	for !r.synced && len(a.waiting) > 0 && len(a.since) < most {
		p := a.waiting[0]
		a.waiting = a.waiting[1:]
		if _, open := a.since[p]; !open && r.audit.whole[p] {
			a.since[p] = r.ticks
			out.send(p, r.open(p))
		}
	}
}

// tickAsking asks others where no answer came.
func (r *Replica) tickAsking(out *Output) {
	a := &r.asking
	for _, p := range r.peers.list {
		if since, open := a.since[p]; open && r.ticks-since >= askTicks {
			delete(a.since, p)
			a.waiting = append(a.waiting, p)
		}
	}
	r.sure()
	r.askNext(out)
}

// sure takes note of that all is here, once enough peers that know it agree.
func (r *Replica) sure() {
	a := &r.asking
	if r.synced || len(a.sure) == 0 {
		return
	}
	if a.at == 0 {
		a.at = max(r.ticks, 1)
	}
	if len(a.sure) < min(twoSure, len(r.peers.list)) && r.ticks-a.at < sureTicks {
		return
	}
	r.synced = true
	a.waiting = nil
	clear(a.since)
}
