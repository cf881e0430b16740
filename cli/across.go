package cli

import (
	"context"
	"errors"
	"strings"
	"sync"

	"strait.io/strait/daemon/api"
)

// Answered is what the daemon answers that a context leads to, or why there is no answer.
type Answered[A any] struct {
	Context string `json:"context"`
	Answer  A      `json:"answer,omitempty"`
	Error   string `json:"error,omitempty"`
	Try     string `json:"try,omitempty"`

	err error
}

// ContextAnswers is the data of a query of several contexts.
type ContextAnswers[A any] struct {
	api.Meta
	Items []Answered[A] `json:"items"`
}

// Only returns the program as if the flags had one context alone.
func (a *App) Only(context string) App {
	one := *a
	one.From.Contexts, one.From.opened = []string{context}, nil
	return one
}

// Across does something for each context of the flags, all at the same time, as if the flags had
// that one alone.
func (a *App) Across(do func(i int, one *App)) {
	var wg sync.WaitGroup
	for i, name := range a.From.Each() {
		one := a.Only(name)
		wg.Go(func() { do(i, &one) })
	}
	wg.Wait()
}

// Explained returns the message of an error, and what to do about it.
func Explained(err error) (message, try string) {
	var f *api.Failure
	if errors.As(err, &f) {
		return f.Message, f.Try
	}
	return err.Error(), ""
}

// across prints one list of what the daemons of several contexts answer.
func (l List[T, A]) across(ctx context.Context, a *App, names Names) error {
	answers := make([]Answered[A], len(a.From.Each()))
	a.Across(func(i int, one *App) {
		each := &answers[i]
		each.Context = one.From.Contexts[0]
		lenient := names
		lenient.lenient = true
		if each.Answer, _, each.err = l.get(ctx, one, lenient); each.err != nil {
			each.Error, each.Try = Explained(each.err)
		}
	})
	if done, err := a.Data(ContextAnswers[A]{api.Meta{APIVersion: api.APIVersion, Kind: "ContextAnswers"}, answers}); err != nil {
		return err
	} else if !done {
		if err := l.printAcross(a, answers); err != nil {
			return err
		}
	}
	return l.outcome(names, answers)
}

func (l List[T, A]) printAcross(a *App, answers []Answered[A]) error {
	lists := make([][]T, len(answers))
	for i, each := range answers {
		if each.err == nil {
			lists[i] = *l.Items(each.Answer)
		}
	}
	merged := l.Table.Merge(lists, a.form())
	items := make([]T, len(merged))
	for i, m := range merged {
		items[i] = m.Item
	}
	if done, err := a.Names(l.Table.Names(items)); done {
		return err
	}
	header, rows := append(l.Table.Header(a.form()), "SEEN FROM"), l.Table.Rows(items, a.Now(), a.form())
	for i, m := range merged {
		rows[i] = append(rows[i], seenFrom(m.Lists, answers))
	}
	return a.AtOnce(func(p Printer) {
		p.Table(header, rows)
		for _, each := range answers {
			if each.err != nil {
				p.Line("%s context %s: %s", api.Bad, each.Context, strings.TrimPrefix(each.Error, "context "+each.Context+": "))
				if each.Try != "" {
					p.Line("  try  %s", each.Try)
				}
			}
		}
	})
}

// seenFrom names the contexts whose daemons see a row.
func seenFrom[A any](lists []int, answers []Answered[A]) string {
	if len(lists) == len(answers) {
		return "all"
	}
	var names []string
	for _, i := range lists {
		names = append(names, answers[i].Context)
	}
	return strings.Join(names, ", ")
}

// outcome is the exit code: of a name that is nowhere, or else of a context that did not answer.
func (l List[T, A]) outcome(names Names, answers []Answered[A]) error {
	var known []string
	var failed error
	for _, each := range answers {
		if each.err != nil {
			failed = each.err
			continue
		}
		for _, item := range *l.Items(each.Answer) {
			known = append(known, l.name(item))
		}
		if l.Known != nil {
			known = append(known, l.Known(each.Answer)...)
		}
	}
	if failed != nil {
		var coded *ExitError
		if errors.As(asExit(failed), &coded) {
			return Exit(coded.Code, nil)
		}
		return Exit(ExitUnknown, nil)
	}
	return names.missing(l.Noun, known)
}
