package cli

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/client"
	"strait.io/strait/daemon/api/table"
)

// List is a command that lists items T of an answer A.
type List[T, A any] struct {
	Table table.Table[T]
	// Noun is what an argument names, such as "service".
	Noun string
	// Of is the name by which arguments choose an item; nil if that is the item's own. Known are
	// more names that are no error; it may be nil.
	Of    func(item T) string
	Known func(answer A) []string
	// Namespaced lists take -n and -A.
	Namespaced bool
	// Parents lists take the first part of names too, such as a cluster for all of its nodes.
	Parents bool
	// Sparse tables leave out columns that are empty in every row.
	Sparse bool
	// Ask asks the daemon. Of the names on the command line it may use those that limit the answer.
	Ask func(c *client.Client, ctx context.Context, names Names) (A, error)
	// Gather takes the place of Ask in lists that ask several nodes or contexts for one answer.
	Gather func(ctx context.Context, a *App, names Names) (A, error)
	// Items are those of an answer, to which the names on the command line are applied.
	Items func(answer A) *[]T
	From  func(answer A) api.Viewpoint
	// Notices are lines before the table, about the whole answer. After prints lines below it,
	// about its items. Both may be nil.
	Notices func(answer A) []string
	After   func(p Printer, answer A)
	// Title is the first line of an answer that no one node gave, and Outcome the exit code of one
	// that is not whole. Both may be nil.
	Title   func(answer A) string
	Outcome func(answer A) error
	// Empty is a hint if there are no items.
	Empty string
}

// Fill makes cmd list: it gives it the arguments, flags and formats that all lists have.
func (l List[T, A]) Fill(a *App, cmd *cobra.Command) *cobra.Command {
	var names Names
	var watch bool
	cmd.Args = cobra.ArbitraryArgs
	if cmd.ValidArgsFunction == nil {
		cmd.ValidArgsFunction = cobra.NoFileCompletions
	}
	cmd.Annotations = map[string]string{shape: list}
	if l.Namespaced {
		names.flags(cmd)
	}
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "keep running, and print what changes")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		names := names
		names.parents = l.Parents
		if err := names.parse(args, l.Namespaced); err != nil {
			return err
		}
		if len(a.From.Each()) > 1 && l.Gather == nil {
			if watch {
				return UsageError("--watch takes one --context")
			}
			return l.across(cmd.Context(), a, names)
		}
		answer, notices, err := l.get(cmd.Context(), a, names)
		if err != nil {
			return err
		}
		err = l.print(a, answer, notices)
		switch {
		case err != nil:
			return err
		case watch:
			return l.watch(cmd.Context(), a, names, answer)
		case l.Outcome != nil:
			return l.Outcome(answer)
		}
		return nil
	}
	return cmd
}

// get asks for the items that are named, and what to notice of all.
func (l List[T, A]) get(ctx context.Context, a *App, names Names) (answer A, notices []string, err error) {
	if l.Gather != nil {
		answer, err = l.Gather(ctx, a, names)
	} else {
		answer, err = Ask(ctx, a, func(c *client.Client, ctx context.Context) (A, error) { return l.Ask(c, ctx, names) })
	}
	if err != nil {
		return answer, nil, err
	}
	if l.Notices != nil {
		notices = l.Notices(answer)
	}
	items, known := l.Items(answer), []string{}
	if l.Known != nil {
		known = l.Known(answer)
	}
	for _, item := range *items {
		known = append(known, l.name(item))
	}
	*items = slices.DeleteFunc(*items, func(item T) bool { return !names.Keep(l.name(item)) })
	return answer, notices, names.missing(l.Noun, known)
}

// name is what the arguments of the command name.
func (l List[T, A]) name(item T) string {
	if l.Of != nil {
		return l.Of(item)
	}
	return l.Table.Name(item)
}

func (l List[T, A]) print(a *App, answer A, notices []string) error {
	items := *l.Items(answer)
	if done, err := a.Names(l.Table.Names(items)); done {
		return err
	}
	if done, err := a.Data(answer); done {
		return err
	}
	return a.AtOnce(func(p Printer) {
		l.header(a, p, answer)
		for _, line := range notices {
			p.Line("%s", line)
		}
		l.rows(a, p, items)
		if l.After != nil {
			l.After(p, answer)
		}
		if len(items) == 0 && l.Empty != "" {
			a.Hint("%s", l.Empty)
		}
	})
}

func (l List[T, A]) header(a *App, p Printer, answer A) {
	if l.Title != nil {
		if title := l.Title(answer); title != "" {
			p.Line("%s", title)
			return
		}
	}
	a.Header(p, l.From(answer), "")
}

func (l List[T, A]) rows(a *App, p Printer, items []T) {
	header, rows := l.Table.Header(a.form()), l.Table.Rows(items, a.Now(), a.form())
	if l.Sparse {
		header, rows = WithoutEmpty(header, rows)
	}
	p.Table(header, rows)
}

// watchEvery is how often a watched list is looked at.
const watchEvery = time.Second

// watch prints what changes, until ctx ends. As data, it prints every changed answer as a whole.
// Names that are not there any more are no error: they can come back.
func (l List[T, A]) watch(ctx context.Context, a *App, names Names, last A) error {
	names.lenient = true
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(watchEvery):
		}
		answer, _, err := l.get(ctx, a, names)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		}
		changes := l.Table.Compare(*l.Items(last), *l.Items(answer), a.form())
		if len(changes.Rows)+len(changes.Gone) == 0 {
			continue
		}
		last = answer
		if err := l.change(a, answer, changes); err != nil {
			return err
		}
	}
}

func (l List[T, A]) change(a *App, answer A, changes table.Changes[T]) error {
	if done, err := a.Names(l.Table.Names(changes.Rows)); done {
		return err
	}
	if done, err := a.Data(answer); done {
		return err
	}
	return a.AtOnce(func(p Printer) {
		p.Line("")
		l.header(a, p, answer)
		if len(changes.Rows) > 0 {
			l.rows(a, p, changes.Rows)
		}
		for _, name := range changes.Gone {
			p.Line("%s %s is not there any more", api.Warn, name)
		}
	})
}

// AtOnce prints in one write: programs that read what --watch prints see whole changes.
func (a *App) AtOnce(print func(Printer)) error {
	var text bytes.Buffer
	p := a.Printer()
	p.W = &text
	print(p)
	if _, err := a.Stdout.Write(text.Bytes()); err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	return nil
}

// Names prints names if --output asks for them, and reports whether it does.
func (a *App) Names(names []string) (done bool, err error) {
	if a.Output != "name" {
		return false, nil
	}
	return true, a.AtOnce(func(p Printer) {
		for _, name := range names {
			p.Line("%s", name)
		}
	})
}

// form is what --output makes of tables.
func (a *App) form() table.Form { return table.Form{Wide: a.Output == "wide"} }

// Show prints items as a table.
func Show[T any](a *App, p Printer, t table.Table[T], items []T) {
	p.Table(t.Header(a.form()), t.Rows(items, a.Now(), a.form()))
}
