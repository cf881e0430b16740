package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/client"
	"strait.io/strait/daemon/api/support"
)

// From chooses whom queries ask. Without contexts that is the daemon on this node or, where none
// has ever run, the cluster of the kubeconfig's current context.
type From struct {
	// Contexts are those of a kubeconfig.
	Contexts []string
	// Kubeconfig is a file; empty is the one that kubectl would use.
	Kubeconfig string
	// Login is how to reach the API servers of the contexts.
	Login Login
	// Namespace is that in which strait is installed.
	Namespace string
	// Node is the node of the cluster whose daemon answers; empty is the one that is asked.
	Node string
	// File is a support bundle that answers in place of daemons.
	File string

	bundle *support.Bundle // that in File
	opened *client.Client
}

// Each returns the contexts, each once.
func (f From) Each() (out []string) {
	for _, name := range f.Contexts {
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// Place is a cluster whose daemons are asked: a context of a kubeconfig; without a name, the
// current one.
type Place struct {
	Kubeconfig, Context, Namespace string
	Login                          Login
}

// farTimeout bounds a query by an API server, which may have to start a command in a pod.
const farTimeout = 20 * time.Second

// AskFlags gives the flags that choose whom to ask to commands.
func (a *App) AskFlags(commands ...*cobra.Command) {
	for _, c := range commands {
		f := c.Flags()
		f.StringArrayVar(&a.From.Contexts, "context", nil, "ask the cluster of this kubeconfig context, by its `name`")
		f.StringVar(&a.From.Kubeconfig, "kubeconfig", "", "`file` with contexts (default: the one that kubectl uses)")
		f.StringVar(&a.From.Namespace, "strait-namespace", "strait-system", "`name` of strait's namespace")
		f.StringVar(&a.From.Node, "node", "", "have the daemon of this node of the cluster answer, by its `name`")
		f.StringVar(&a.From.File, "file", "", "answer from this support bundle, a `file`, and ask no daemon")
		LoginFlags(c, &a.From.Login)
		_ = c.RegisterFlagCompletionFunc("node", a.CompleteNode)
		c.MarkFlagsMutuallyExclusive("file", "kubeconfig")
		c.PreRunE = func(*cobra.Command, []string) error { return a.load() }
	}
}

// load reads the support bundle that the flags name. From then on, the clusters to ask are those of
// the bundle, and now is when it was made, so that ages are those of then.
func (a *App) load() error {
	if a.From.File == "" {
		return nil
	}
	file, err := os.Open(a.From.File)
	if err != nil {
		return Exit(ExitUsage, err)
	}
	defer file.Close()
	b, err := support.Read(file)
	if err != nil {
		return Exit(ExitUsage, fmt.Errorf("%s: %w", a.From.File, err))
	}
	a.Hint("from a support bundle of %s, which is %s old", b.Time.UTC().Format(time.RFC3339), api.Age(a.Now().Sub(b.Time)))
	a.From.bundle, a.Now = b, func() time.Time { return b.Time }
	if len(a.From.Contexts) == 0 {
		a.From.Contexts = b.Names()
	}
	return nil
}

// CompleteNode offers the names of the nodes of the cluster that is asked.
func (a *App) CompleteNode(cmd *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), CompletionTimeout)
	defer cancel()
	a.From.Node = ""
	list, err := Ask(ctx, a, (*client.Client).Nodes)
	if err != nil {
		cobra.CompDebugln(err.Error(), false)
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, n := range list.Items {
		if n.Cluster == list.SeenFrom.Cluster {
			names = append(names, n.Name)
		}
	}
	return offer(names, prefix)
}

// offer completes a prefix to names, without those that could control the terminal.
func offer(names []string, prefix string) (out []string, _ cobra.ShellCompDirective) {
	for _, name := range names {
		if strings.HasPrefix(name, prefix) && Clean(name) == name {
			out = append(out, name)
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// CompleteContext offers the contexts of the kubeconfig.
func (a *App) CompleteContext(cmd *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if a.ContextNames == nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	file, _ := cmd.Flags().GetString("kubeconfig") // a command without the flag uses the default
	return offer(a.ContextNames(file), prefix)
}

// AsksCluster reports whether the flags choose all nodes of one or more clusters, and not one
// daemon.
func (a *App) AsksCluster(ctx context.Context) (bool, error) {
	switch {
	case a.From.Node == api.EveryNode || len(a.From.Each()) > 1:
		return true, nil
	case a.From.Node != "":
		return false, nil
	}
	c, err := a.Way(ctx)
	return err == nil && !c.Local(), err
}

// Way returns the client of the daemon that the flags choose, and opens it first.
func (a *App) Way(ctx context.Context) (c *client.Client, err error) {
	if a.From.opened == nil {
		ctx, cancel := context.WithTimeout(ctx, farTimeout)
		defer cancel()
		a.From.opened, err = a.open(ctx)
	}
	return a.From.opened, err
}

// Ask sends one query, with a deadline, to the daemon that the flags choose.
func Ask[T any](ctx context.Context, a *App, question func(*client.Client, context.Context) (T, error)) (none T, err error) {
	if a.From.Node == api.EveryNode {
		return none, UsageError("this command asks one node: name it with --node; strait status, check and version take '*'")
	}
	way, err := a.Way(ctx)
	if err != nil {
		return none, err
	}
	limit := farTimeout
	if way.Local() {
		limit = answerTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return question(way.At(a.From.Node), ctx)
}

// AskHere sends one query to the daemon on this node, with a deadline.
func AskHere[T any](ctx context.Context, a *App, question func(*client.Client, context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	return question(client.OnSocket(a.Socket), ctx)
}

// open opens the way to the daemon that the flags choose.
func (a *App) open(ctx context.Context) (*client.Client, error) {
	here, place := client.OnSocket(a.Socket), Place{Kubeconfig: a.From.Kubeconfig, Namespace: a.From.Namespace, Login: a.From.Login}
	contexts := a.From.Each()
	switch len(contexts) {
	case 0:
		if a.From.bundle != nil {
			return nil, &api.Failure{Reason: api.NotFound, Message: a.From.File + " has no answers of any cluster", Try: "make another bundle"}
		}
		if a.Reach == nil || a.From.Kubeconfig == "" && (a.Socket != api.DefaultSocket || exists(a.Socket)) {
			return here, nil
		}
	case 1:
		place.Context = contexts[0]
	default:
		return nil, UsageError("this command asks one cluster: name one --context; strait status and the lists take several")
	}
	if a.From.bundle != nil {
		return a.From.bundle.Of(place.Context)
	}
	c, err := a.Reach(ctx, place)
	if errors.Is(err, ErrNoContext) && place.Context == "" {
		return nil, &api.Failure{Reason: api.NoSocket, Cause: err,
			Message: fmt.Sprintf("there is no socket %s: straitd does not run on this machine, and no kubeconfig has a current context", a.Socket),
			Try:     "name a cluster with --context or --kubeconfig; on a node, start straitd, or name its socket with --socket PATH or STRAIT_SOCKET"}
	}
	return c, err
}

// ErrNoContext means that a kubeconfig has no current context, or that there is no kubeconfig.
var ErrNoContext = errors.New("no current context")

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
