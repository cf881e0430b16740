package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"strait.io/strait/cli"
	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/client"
	"strait.io/strait/daemon/api/table"
)

const traceLong = `Show the way of a record to this node, hop by hop, and its age: where does a change hang?

Each cluster publishes what it exports in a record, and each node the endpoints of its pods in
another. NAMESPACE/NAME traces the records that matter to a service: those of the clusters that
export it, and of the nodes with its endpoints. CLUSTER and CLUSTER/NODE trace one record. If
NAMESPACE/NAME is a node, too, that is traced; with -n NAMESPACE, NAME is always a service.

The first row of a record is the node that is asked, and each row got the record from the next one.
AGE and AT are when the version came to the hop, by the clock of that machine. TOOK is how long it
took from the next hop, as exactly as the clocks of the two are known. HOW says whether the version
was passed on, written here, or read from disk when the daemon started.

Daemons answer for the nodes of their own cluster. To follow a record into other clusters, name
their contexts, too: the way to the cluster of the first --context is shown. A service or record of
which that one does not know yet is found if another context knows it.

The exit code is 1 if a record hangs, and 3 if its writer could not be found.`

// TraceCommand is strait trace.
func TraceCommand(a *cli.App) *cobra.Command {
	var namespace string
	c := cli.Wide(&cobra.Command{
		Use:   "trace NAMESPACE/NAME | CLUSTER[/NODE]",
		Short: "Show the way of a service's records to this node, and where they hang",
		Long:  traceLong,
		Example: `  strait trace default/serve
  strait trace us-east/us-east-1 -o wide
  strait trace us-east --context eu-west --context us-east    # the way from us-east to eu-west`,
		Args: cobra.ExactArgs(1),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
			return completeTraced(a, cmd, args, prefix)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if strings.Count(args[0], "/") > 1 || strings.Contains(args[0], ":") || slices.Contains(strings.Split(args[0], "/"), "") {
				return cli.UsageError("%q is not a name: write NAMESPACE/NAME, CLUSTER or CLUSTER/NODE", args[0])
			}
			return trace(cmd.Context(), a, cli.InNamespace(namespace, args)[0], namespace != "")
		},
	})
	c.Flags().SortFlags = false
	c.Flags().StringVarP(&namespace, "namespace", "n", "", "the service's `namespace`, for a NAME without one")
	return c
}

// completeTraced offers services, and the writers of records.
func completeTraced(a *cli.App, cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	names, directive := a.CompleteService(cmd, args, prefix)
	if len(args) > 0 {
		return names, directive
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), cli.CompletionTimeout)
	defer cancel()
	if list, err := cli.Ask(ctx, a, (*client.Client).Members); err == nil {
		for _, m := range list.Items {
			if name := m.Name(); strings.HasPrefix(name, prefix) && cli.Clean(name) == name {
				names = append(names, name)
			}
		}
	}
	return names, directive
}

// trace shows the ways of the records that a name means.
func trace(ctx context.Context, a *cli.App, name string, isService bool) error {
	t := openTracing(ctx, a)
	first := t.entries[0]
	if first.err != nil {
		return first.err
	}
	service, origins := "", []string{name}
	if isService || !t.knows(name) {
		if !strings.Contains(name, "/") {
			return t.noSuchOrigin(name)
		}
		var err error
		if origins, err = t.originsOf(ctx, name); err != nil {
			return err
		}
		service = name
	}
	from := first.told.SeenFrom
	items := make([]api.Trace, len(origins))
	for i, o := range origins {
		items[i] = api.NewTrace(from.Cluster+"/"+from.Node, o, func(name string) (api.Told, error) { return t.ask(ctx, name, o) })
	}
	list := api.NewTraceList(from, service, items)
	if done, err := a.Data(list); err != nil {
		return err
	} else if !done {
		if err := a.AtOnce(func(p cli.Printer) { t.print(p, list) }); err != nil {
			return err
		}
	}
	return t.exit(list)
}

// tracing asks daemons what they hold, each once.
type tracing struct {
	a *cli.App
	// entries are the daemons that the contexts lead to; without contexts, the one that is asked.
	entries []entry
	told    map[string]api.Told
	failed  map[string]error
}

// entry is a daemon that a context leads to, which also asks the others of its cluster.
type entry struct {
	app     cli.App
	context string
	told    api.Told
	err     error
}

// openTracing asks the daemons that the contexts lead to.
func openTracing(ctx context.Context, a *cli.App) *tracing {
	t := &tracing{a: a, told: map[string]api.Told{}, failed: map[string]error{}, entries: make([]entry, max(1, len(a.From.Each())))}
	open := func(i int, one *cli.App) {
		e := &t.entries[i]
		if i > 0 {
			one.From.Node = "" // it names a node of the first one's cluster
		}
		if e.told, e.err = t.members(ctx, one); e.err == nil {
			one.From.Node = ""
		}
		e.app = *one
	}
	if names := a.From.Each(); len(names) > 0 {
		for i, name := range names {
			t.entries[i].context = name
		}
		a.Across(open)
	} else {
		one := *a
		open(0, &one)
	}
	for _, e := range t.entries {
		if e.err == nil {
			t.told[e.told.SeenFrom.Cluster+"/"+e.told.SeenFrom.Node] = e.told
		}
	}
	return t
}

// members asks a daemon which records it holds. When it was asked counts only if it was now.
func (t *tracing) members(ctx context.Context, a *cli.App) (told api.Told, err error) {
	if _, err := a.Way(ctx); err != nil { // which takes its time, too
		return told, err
	}
	sent := a.Now()
	if told.MemberList, err = cli.Ask(ctx, a, (*client.Client).Members); err == nil && a.From.File == "" {
		told.Sent, told.Came = sent, a.Now()
	}
	return told, err
}

// ask asks the daemon of a node, or any of a cluster, about the record of an origin.
func (t *tracing) ask(ctx context.Context, name, origin string) (api.Told, error) {
	if told, asked := t.told[name]; asked {
		return told, nil
	}
	if err := t.failed[name]; err != nil {
		return api.Told{}, err
	}
	cluster, node, isNode := strings.Cut(name, "/")
	i := slices.IndexFunc(t.entries, func(e entry) bool { return e.err == nil && e.told.SeenFrom.Cluster == cluster })
	if i < 0 {
		return api.Told{}, t.elsewhere(cluster, node, origin)
	}
	if !isNode {
		return t.entries[i].told, nil
	}
	one := t.entries[i].app
	one.From.Node = node
	told, err := t.members(ctx, &one)
	if err != nil {
		t.failed[name] = err
		return told, err
	}
	t.told[name] = told
	return told, nil
}

// elsewhere is why a node of another cluster is not asked.
func (t *tracing) elsewhere(cluster, node, origin string) error {
	f := &api.Failure{Reason: api.NoAnswer, Cause: api.ErrUnasked, Try: "strait trace " + origin + " --context CONTEXT",
		Message: fmt.Sprintf("no daemon of cluster %s can be asked from here", cluster)}
	if node != "" {
		f.Message = fmt.Sprintf("%s/%s is a node of another cluster, whose daemons cannot be asked from here", cluster, node)
		f.Try += " --node " + cluster + "/" + node
	}
	return f
}

// knows reports whether any daemon that answered has a member of this name.
func (t *tracing) knows(name string) bool { return slices.Contains(t.names(), name) }

func (t *tracing) names() (names []string) {
	for _, e := range t.entries {
		if e.err == nil {
			for _, m := range e.told.Items {
				names = append(names, m.Name())
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (t *tracing) noSuchOrigin(name string) error {
	try := "list the clusters and nodes: strait members"
	if near := api.Similar(t.names(), name); len(near) > 0 {
		try = "did you mean " + strings.Join(near, ", ") + "?"
	}
	from := t.entries[0].told.SeenFrom
	return &api.Failure{Reason: api.NotFound, Try: try,
		Message: fmt.Sprintf("there is no cluster %s, as seen from %s/%s, and a service has a namespace: NAMESPACE/NAME", name, from.Cluster, from.Node)}
}

// originsOf returns the writers of the records that matter to a service, as all contexts know it: each
// cluster before its nodes.
func (t *tracing) originsOf(ctx context.Context, service string) (origins []string, err error) {
	answers, errs := make([]*api.Explanation, len(t.entries)), make([]error, len(t.entries))
	var wg sync.WaitGroup
	for i := range t.entries {
		if e := &t.entries[i]; e.err == nil {
			one := e.app
			if i == 0 {
				one.From.Node = t.a.From.Node
			}
			wg.Go(func() {
				answers[i], errs[i] = cli.Ask(ctx, &one, func(c *client.Client, ctx context.Context) (*api.Explanation, error) {
					return c.Explain(ctx, service, "")
				})
			})
		}
	}
	wg.Wait()
	for _, answer := range answers {
		if answer != nil {
			origins = append(origins, writers(answer.Service)...)
		}
	}
	if len(origins) > 0 {
		slices.Sort(origins)
		return slices.Compact(origins), nil
	}
	err = errors.Join(errs...)
	var f *api.Failure
	if errors.As(err, &f) && f.Reason == api.NotFound {
		told := *f
		told.Message = fmt.Sprintf("%s; and no node is called %s", f.Message, service)
		told.Try = strings.TrimSuffix(f.Try, "?") + "; or, if a cluster exports it, trace that cluster's record: strait trace CLUSTER"
		return nil, &told
	}
	return nil, err
}

// writers are the clusters that export a service, and the nodes with its endpoints.
func writers(s api.Service) (out []string) {
	out = slices.Clone(s.Exporters)
	for _, f := range s.Frontends {
		for _, e := range f.Endpoints {
			if e.Node != "" {
				out = append(out, e.Cluster+"/"+e.Node)
			}
		}
	}
	return out
}

func (t *tracing) print(p cli.Printer, list *api.TraceList) {
	t.a.Header(p, list.SeenFrom, "")
	if list.Service != "" {
		p.Line("%s · %s: %s", list.Service, api.Count(len(list.Items), "record"), traceCounts(list))
	}
	unasked := false
	for _, x := range list.Items {
		p.Line("")
		p.Line("%s", traceTitle(x))
		cli.Show(t.a, p, table.Hops, x.Hops)
		for _, f := range x.Findings {
			p.Line("%s %s", traceGlyph(f.Outcome), f.Message)
			if f.Try != "" {
				p.Line("  try  %s", f.Try)
			}
		}
		unasked = unasked || slices.ContainsFunc(x.Hops, func(h api.Hop) bool { return h.Unasked })
	}
	for _, e := range t.entries {
		if e.err != nil {
			message, try := cli.Explained(e.err)
			p.Line("%s context %s: %s", api.Bad, e.context, strings.TrimPrefix(message, "context "+e.context+": "))
			if try != "" {
				p.Line("  try  %s", try)
			}
		}
	}
	if unasked {
		t.a.Hint("to follow records through several clusters, name the context of each, first that to which they come: --context THERE --context ITS-ORIGIN")
	}
}

// traceCounts says how many records have which outcome.
func traceCounts(list *api.TraceList) string {
	var counts []string
	for _, o := range api.TraceOutcomes {
		switch n := list.Count(o); {
		case n > 1 && o == api.TraceHangs:
			counts = append(counts, fmt.Sprintf("%d hang", n))
		case n > 0:
			counts = append(counts, fmt.Sprintf("%d %s", n, o))
		}
	}
	return strings.Join(counts, ", ")
}

// traceTitle is the verdict on a record.
func traceTitle(x api.Trace) string {
	here := x.Hops[0].Node
	text := map[api.TraceOutcome]string{
		api.TraceCurrent: here + " holds what was written last",
		api.TraceComing:  "a newer version is on its way to " + here,
		api.TraceHangs:   "it hangs",
		api.TraceUnknown: "whether " + here + " holds what was written last is not known",
	}[x.Outcome]
	of := "record of the cluster"
	if strings.Contains(x.Origin, "/") {
		of = "record of the node"
	}
	return fmt.Sprintf("%s %s · %s · %s", traceGlyph(x.Outcome), x.Origin, of, text)
}

func traceGlyph(o api.TraceOutcome) string {
	return map[api.TraceOutcome]string{api.TraceCurrent: api.OK, api.TraceComing: api.Warn, api.TraceHangs: api.Bad, api.TraceUnknown: api.Unknown}[o]
}

// exit is the exit code of the worst.
func (t *tracing) exit(list *api.TraceList) error {
	switch {
	case list.Count(api.TraceHangs) > 0:
		return cli.Exit(cli.ExitProblem, nil)
	case list.Count(api.TraceUnknown) > 0, slices.ContainsFunc(t.entries, func(e entry) bool { return e.err != nil }):
		return cli.Exit(cli.ExitUnknown, nil)
	}
	return nil
}
