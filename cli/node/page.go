package node

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"strait.io/strait/cli"
	"strait.io/strait/cli/ui"
	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/client"
	"strait.io/strait/daemon/api/table"
	"strait.io/strait/web"
)

const pageLong = `Serve a page on this machine that shows what the queries show, and keeps it up to date: what needs
attention, round-trip times between clusters, services and where their connections go and why,
who calls them, what a change would do, nodes, and what changed when and why. Open the address that
it prints in a browser.

The page can change nothing. It is served on 127.0.0.1 alone, and only to browsers that have the
token in the address: as long as the command runs, any user of this machine who has the address can
look. While no page is open, no daemon is asked.

To look from another machine, forward the port, and open the address with the forwarded port:
ssh -L 8080:127.0.0.1:PORT HOST`

// UICommand is strait ui.
func UICommand(a *cli.App) *cobra.Command {
	var port uint16
	cmd := &cobra.Command{
		Use:   "ui",
		Short: "Serve a page that shows the clusterset in a browser, on this machine alone",
		Long:  pageLong,
		Example: "  strait ui                               # by the daemon on this node\n" +
			"  strait ui --context c1 --context c2     # of two clusters, from anywhere\n" +
			"  strait ui --file strait-20261129T140200Z.tar.gz",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return servePage(cmd.Context(), a, port) },
	}
	cmd.Flags().Uint16Var(&port, "port", 0, "`port` on 127.0.0.1 (default: any that is free)")
	return cmd
}

// servePage serves the page until ctx ends. Without any answer of a daemon it does not begin.
func servePage(ctx context.Context, a *cli.App, port uint16) error {
	if a.From.Node == api.EveryNode {
		return cli.UsageError("strait ui asks all nodes anyway: leave --node out, or name the node whose view it shows")
	}
	p := newPage(a)
	if err := p.anyAnswer(ctx); err != nil {
		return err
	}
	l, err := ui.Listen(port)
	if err != nil {
		return cli.Exit(cli.ExitProblem, fmt.Errorf("%w; choose another --port, or leave it out", err))
	}
	s := ui.New(ui.Config{Files: web.Files(), Views: p.views(), Explain: cli.Explained, Now: time.Now})
	if done, err := a.Data(pageAddress{api.Meta{APIVersion: api.APIVersion, Kind: "Page"}, s.Address(l)}); err != nil {
		return err
	} else if !done {
		a.Printer().Line("%s", s.Address(l))
	}
	a.Hint("open it in a browser on this machine; anyone with the address can look. Ctrl-C ends it.")
	return s.Run(ctx, l)
}

// pageAddress is where the page is, as data.
type pageAddress struct {
	api.Meta
	Address string `json:"address"`
}

// page has what the views of strait ui are made from: a way to each cluster that the flags choose.
type page struct {
	app    *cli.App
	places []*place
	counts counts
}

// place is one cluster that is asked.
type place struct {
	context string // of the kubeconfig or the bundle; empty for what the flags choose without one
	closed  cli.App
	mu      sync.Mutex
	open    *cli.App
}

func newPage(a *cli.App) *page {
	p := &page{app: a}
	for _, name := range a.From.Each() {
		p.places = append(p.places, &place{context: name, closed: a.Only(name)})
	}
	if len(p.places) == 0 {
		p.places = []*place{{closed: *a}}
	}
	return p
}

// anyAnswer returns nil if at least one cluster answers, and otherwise the first error.
func (p *page) anyAnswer(ctx context.Context) error {
	errs := make([]error, len(p.places))
	var wg sync.WaitGroup
	for i, at := range p.places {
		wg.Go(func() { _, errs[i] = ask(ctx, at, (*client.Client).Status) })
	}
	wg.Wait()
	for i, err := range errs {
		if err == nil {
			return nil
		}
		if len(errs) > 1 {
			message, _ := cli.Explained(err)
			p.app.Hint("context %s: %s", p.places[i].context, cli.Clean(message))
		}
	}
	return errs[0]
}

// way returns the program with an open way to the cluster. Views are made at the same time, each with a copy.
func (at *place) way(ctx context.Context) (cli.App, error) {
	at.mu.Lock()
	defer at.mu.Unlock()
	if at.open == nil {
		one := at.closed
		if _, err := one.Way(ctx); err != nil {
			return one, err
		}
		at.open = &one
	}
	return *at.open, nil
}

// lost closes the way after an error that another way to the cluster may not have: a pod that is gone.
func (at *place) lost(err error) {
	var f *api.Failure
	if err == nil || errors.As(err, &f) && (f.Reason == api.NotFound || f.Reason == api.BadRequest) {
		return
	}
	at.mu.Lock()
	defer at.mu.Unlock()
	at.open = nil
}

// ask sends one query to a cluster.
func ask[T any](ctx context.Context, at *place, question func(*client.Client, context.Context) (T, error)) (answer T, err error) {
	one, err := at.way(ctx)
	if err != nil {
		return answer, err
	}
	answer, err = cli.Ask(ctx, &one, question)
	at.lost(err)
	return answer, err
}

// in returns the cluster that a query chooses by its context; the first without one.
func (p *page) in(q url.Values) (*place, error) {
	name := q.Get("context")
	i := slices.IndexFunc(p.places, func(at *place) bool { return name == "" || at.context == name })
	if i < 0 {
		return nil, &api.Failure{Reason: api.BadRequest, Message: "strait ui was started without the context " + name, Try: "start it with --context " + name}
	}
	return p.places[i], nil
}

func (p *page) views() map[string]ui.View {
	return map[string]ui.View{
		"frame":      p.frame,
		"clusterset": p.clusterset,
		"services":   p.services,
		"service":    p.service,
		"flows":      p.flows,
		"whatif":     p.whatIf,
		"nodes":      p.nodes,
		"timeline":   p.timeline,
	}
}

// frameView is what the page shows around all views.
type frameView struct {
	Contexts []string `json:"contexts"`
	Version  string   `json:"version"`
	// Bundle is the support bundle that answers, and Made when it was made.
	Bundle string    `json:"bundle,omitempty"`
	Made   time.Time `json:"made,omitzero"`
}

func (p *page) frame(context.Context, url.Values) (any, error) {
	f := frameView{Contexts: []string{}, Version: p.app.ThisVersion().Version, Bundle: p.app.From.File}
	for _, at := range p.places {
		if at.context != "" {
			f.Contexts = append(f.Contexts, at.context)
		}
	}
	if f.Bundle != "" {
		f.Made = p.app.Now()
	}
	return f, nil
}

// sheet is a table as the page gets it: that of the CLI.
type sheet struct {
	Columns []string   `json:"columns"`
	Rows    [][]string `json:"rows"`
	// Names are what the rows are about, for links.
	Names []string `json:"names,omitempty"`
}

// sheetOf makes a sheet of items; sparse ones leave out columns that are empty in every row.
func sheetOf[T any](p *page, t table.Table[T], items []T, form table.Form, sparse bool) sheet {
	s := sheet{Columns: t.Header(form), Rows: t.Rows(items, p.app.Now(), form)}
	if sparse {
		s.Columns, s.Rows = cli.WithoutEmpty(s.Columns, s.Rows)
	}
	if s.Rows == nil {
		s.Rows = [][]string{}
	}
	for _, row := range s.Rows {
		for i, cell := range row {
			row[i] = cli.Clean(cell)
		}
	}
	for _, item := range items {
		s.Names = append(s.Names, t.Name(item))
	}
	return s
}

// whose is the node whose view an answer is, as the header of the CLI has it.
type whose struct {
	Cluster  string `json:"cluster"`
	Node     string `json:"node"`
	Clusters int    `json:"clusters"`
	// Computed is true if another node computed it.
	Computed bool `json:"computed,omitempty"`
}

func whoseOf(v api.Viewpoint) whose { return whose{v.Cluster, v.Node, v.Clusters, v.Computed} }

// line is the command line that shows the same, to copy.
func (p *page) line(at *place, args ...string) string { return p.lineAt([]*place{at}, args...) }

// lineAt is the command line that asks several clusters.
func (p *page) lineAt(places []*place, args ...string) string {
	f := p.app.From
	words := append([]string{p.app.Program}, args...)
	add := func(flag, value, usual string) {
		if value != usual {
			words = append(words, flag, value)
		}
	}
	if places[0].context == "" && f.Kubeconfig == "" {
		add("--socket", p.app.Socket, api.DefaultSocket)
	}
	add("--file", f.File, "")
	for _, at := range places {
		add("--context", at.context, "")
	}
	add("--kubeconfig", f.Kubeconfig, "")
	add("--strait-namespace", f.Namespace, "strait-system")
	add("--node", f.Node, "")
	for i, w := range words {
		words[i] = quoted(w)
	}
	return cli.Clean(strings.Join(words, " "))
}

// quoted quotes a word for a shell, if it has to be.
func quoted(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:=,@%+*", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 && word != "*" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
