package sim

import (
	"container/heap"
	"time"
)

// event is something to do at a time. Events of the same time happen in the order in which they were added.
type event struct {
	at    time.Duration
	order uint64
	do    func()
}

// queue is the events to come.
type queue struct {
	events heaped
	added  uint64
}

func (q *queue) add(at time.Duration, do func()) {
	q.added++
	heap.Push(&q.events, event{at, q.added, do})
}

// next removes the first event if it is not after end.
func (q *queue) next(end time.Duration) (e event, any bool) {
	if len(q.events) == 0 || q.events[0].at > end {
		return event{}, false
	}
	return heap.Pop(&q.events).(event), true
}

type heaped []event

func (h heaped) Len() int      { return len(h) }
func (h heaped) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

func (h heaped) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].order < h[j].order
}

// Push implements heap.Interface.
func (h *heaped) Push(x any) { *h = append(*h, x.(event)) }

// Pop implements heap.Interface.
func (h *heaped) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = event{}
	*h = (*h)[:last]
	return e
}
