package api

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"time"
)

// Event is a group of items that have one cause, of one node or several.
type Event struct {
	// From and To are when the first and the last item was.
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	// Subject is that of the most telling cause, and Texts what happened to it, in order.
	Subject string   `json:"subject"`
	Texts   []string `json:"texts"`
	// Nodes are those that noted it.
	Nodes []string `json:"nodes"`
	// Added and Withdrawn count endpoints from before the first item to after the last, as the node sees
	// them that has most: one that left and came back counts for nothing.
	Added     int `json:"added,omitempty"`
	Withdrawn int `json:"withdrawn,omitempty"`
	// Effects are the services, from before the first item to after the last, as the first node sees them.
	Effects     []Effect `json:"effects,omitempty"`
	MoreEffects int      `json:"moreEffects,omitempty"`
	// Also are the other causes.
	Also []Cause `json:"also,omitempty"`
	// Errors are why kernels did not hold all of the plan.
	Errors []string `json:"errors,omitempty"`

	counts map[string]map[counted]exchange // by node
}

// counted is whose endpoints are counted.
type counted struct{ service, cluster string }

// exchange counts endpoints that came into use, and those that left it.
type exchange struct{ added, withdrawn int }

// then is what is left of two steps: what one adds is taken for what the other withdrew, since an item has
// no names of endpoints.
func (m exchange) then(n exchange) exchange {
	back, again := min(m.withdrawn, n.added), min(m.added, n.withdrawn)
	return exchange{m.added - again + n.added - back, m.withdrawn - back + n.withdrawn - again}
}

// NodeItem is an item with the node that noted it.
type NodeItem struct {
	Node string
	HistoryItem
}

// Bounds of an Event: items of one subject belong together if there is less than eventPause between two of
// them, and less than eventMost between the first and the last.
const (
	eventPause = 15 * time.Second
	eventMost  = 2 * time.Minute
)

// Timeline groups items by cause, oldest first. Items of one node stay in their order.
func Timeline(items []NodeItem) (out []*Event) {
	slices.SortStableFunc(items, func(a, b NodeItem) int {
		if a.Node == b.Node {
			return cmp.Compare(a.Seq, b.Seq)
		}
		return a.Time.Compare(b.Time)
	})
	open := map[string]*Event{}
	for _, i := range items {
		main := Cause{Kind: CauseRecord, Subject: "the kernel", Text: "was brought up to date"}
		if len(i.Causes) > 0 {
			main = i.Causes[0]
		}
		e := open[main.Subject]
		if e == nil || i.Time.Sub(e.To) > eventPause || i.Time.Sub(e.From) > eventMost || i.Time.Before(e.From) {
			e = &Event{From: i.Time, To: i.Time, Subject: main.Subject, counts: map[string]map[counted]exchange{}}
			open[main.Subject] = e
			out = append(out, e)
		}
		e.add(i, main)
	}
	return out
}

func (e *Event) add(i NodeItem, main Cause) {
	if i.Time.After(e.To) {
		e.To = i.Time
	}
	e.addText(main.Text)
	if !slices.Contains(e.Nodes, i.Node) {
		e.Nodes = append(e.Nodes, i.Node)
	}
	if i.Error != "" && !slices.Contains(e.Errors, i.Error) {
		e.Errors = append(e.Errors, i.Error)
	}
	for _, c := range i.Causes[min(1, len(i.Causes)):] {
		if c.Subject == e.Subject {
			e.addText(c.Text)
		} else if !slices.ContainsFunc(e.Also, func(d Cause) bool { return c.Kind == d.Kind && c.Subject == d.Subject && sameText(c.Text, d.Text) }) {
			e.Also = append(e.Also, c)
		}
	}
	e.count(i)
	e.MoreEffects = max(e.MoreEffects, i.MoreEffects)
	if i.Node != e.Nodes[0] {
		return
	}
	for _, x := range i.Effects {
		at := slices.IndexFunc(e.Effects, func(y Effect) bool { return y.Service == x.Service })
		if at < 0 {
			e.Effects = append(e.Effects, x)
			continue
		}
		e.Effects[at].To = x.To
		if x.Why != "" {
			e.Effects[at].Why = x.Why
		}
	}
}

// addText adds what happened to the subject, unless it is known: nodes see the same at different seconds.
func (e *Event) addText(text string) {
	if !slices.ContainsFunc(e.Texts, func(t string) bool { return sameText(t, text) }) {
		e.Texts = append(e.Texts, text)
	}
}

// since is a time in a text, as package health writes it.
var since = regexp.MustCompile(`,? since \d\d:\d\d:\d\d UTC`)

// sameText compares texts without the times in them: an event has its own.
func sameText(a, b string) bool {
	return a == b || since.ReplaceAllString(a, "") == since.ReplaceAllString(b, "")
}

// count counts the endpoints of an item.
func (e *Event) count(i NodeItem) {
	of := e.counts[i.Node]
	if of == nil {
		of = map[counted]exchange{}
		e.counts[i.Node] = of
	}
	for _, x := range i.Effects {
		for _, c := range x.Clusters {
			k := counted{x.Service, c.Cluster}
			of[k] = of[k].then(exchange{c.Added, c.Withdrawn})
		}
	}
	e.Added, e.Withdrawn = 0, 0
	for _, node := range e.counts {
		var n exchange
		for _, m := range node {
			n.added, n.withdrawn = n.added+m.added, n.withdrawn+m.withdrawn
		}
		e.Added, e.Withdrawn = max(e.Added, n.added), max(e.Withdrawn, n.withdrawn)
	}
}

// Effect says what became of services, in few words.
func (e *Event) Effect() string {
	var out string
	switch {
	case e.Withdrawn > 0 && e.Added > 0:
		out = fmt.Sprintf("%s withdrawn, %d added", Count(e.Withdrawn, "endpoint"), e.Added)
	case e.Withdrawn > 0:
		out = Count(e.Withdrawn, "endpoint") + " withdrawn"
	case e.Added > 0:
		out = Count(e.Added, "endpoint") + " added"
	case slices.ContainsFunc(e.Effects, func(x Effect) bool { return x.From != x.To }):
		out = "shares changed"
	case len(e.Effects) > 0:
		out = "as before in the end"
	}
	services := len(e.Effects) + e.MoreEffects
	switch {
	case services == 1:
		out += fmt.Sprintf(", %s: %s", e.Effects[0].Service, e.Effects[0].move())
	case services > 1:
		out += fmt.Sprintf(", %d services: %s: %s, …", services, e.Effects[0].Service, e.Effects[0].move())
	}
	if len(e.Errors) > 0 {
		if out != "" {
			out += "; "
		}
		out += "the kernel does not hold all of it: " + e.Errors[0]
	}
	return out
}

// move says where the connections to the service went and go.
func (e Effect) move() string {
	from, to := cmp.Or(e.From, "not there"), cmp.Or(e.To, "gone")
	if from == to {
		return "still " + to
	}
	return from + " → " + to
}
