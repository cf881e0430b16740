package sim

import "time"

// event is something to do at a time. Events of the same time happen in the order in which they were added.
type event struct {
	at    time.Duration
	order uint64
	do    func()
	// of, if not nil, is the machine that does it, in the life that it had when the event was added.
	of   *Machine
	life int
}

func (e *event) before(f *event) bool { return e.at < f.at || e.at == f.at && e.order < f.order }

// queue is the events to come: a binary heap. Package container/heap would allocate twice for each event.
type queue struct {
	events []event
	added  uint64
}

func (q *queue) add(e event) {
	q.added++
	e.order = q.added
	q.events = append(q.events, e)
	i := len(q.events) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !e.before(&q.events[parent]) {
			break
		}
		q.events[i] = q.events[parent]
		i = parent
	}
	q.events[i] = e
}

// next removes the first event if it is not after end.
func (q *queue) next(end time.Duration) (first event, any bool) {
	if len(q.events) == 0 || q.events[0].at > end {
		return event{}, false
	}
	first = q.events[0]
	last := len(q.events) - 1
	e := q.events[last]
	q.events[last] = event{}
	q.events = q.events[:last]
	if last > 0 {
		q.sink(e)
	}
	return first, true
}

// sink puts an event into the place of the first one, and moves it down to where it belongs.
func (q *queue) sink(e event) {
	i := 0
	for {
		child := 2*i + 1
		if child >= len(q.events) {
			break
		}
		if right := child + 1; right < len(q.events) && q.events[right].before(&q.events[child]) {
			child = right
		}
		if e.before(&q.events[child]) {
			break
		}
		q.events[i] = q.events[child]
		i = child
	}
	q.events[i] = e
}
