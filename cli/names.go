package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"strait.io/strait/daemon/api"
)

// Names are what a command line limits a list to.
type Names struct {
	// Exact are the arguments: names, or their last parts, such as NAME of NAMESPACE/NAME.
	Exact     []string
	Namespace string
	// lenient lists do not demand that every name is there.
	lenient bool
	// parents is true if the first part of a name, such as a cluster, means all that begin with it.
	parents bool
	all     bool
}

func (n *Names) flags(cmd *cobra.Command) {
	cmd.Flags().SortFlags = false
	cmd.Flags().StringVarP(&n.Namespace, "namespace", "n", "", "only those of this `namespace`")
	cmd.Flags().BoolVarP(&n.all, "all-namespaces", "A", false, "those of all namespaces, the default")
	cmd.MarkFlagsMutuallyExclusive("namespace", "all-namespaces")
}

// InNamespace puts a namespace, unless that is empty, before each argument that has none.
func InNamespace(namespace string, args []string) []string {
	args = slices.Clone(args)
	for i, arg := range args {
		if namespace != "" && !strings.Contains(arg, "/") {
			args[i] = namespace + "/" + arg
		}
	}
	return args
}

// parse takes the arguments. With a namespace, NAME means NAMESPACE/NAME.
func (n *Names) parse(args []string, namespaced bool) error {
	for _, arg := range args {
		parent, name, has := strings.Cut(arg, "/")
		switch {
		case namespaced && strings.Contains(arg, ":"):
			return UsageError("%q: a port is not accepted here; strait explain takes one", arg)
		case arg == "" || has && (parent == "" || name == "" || strings.Contains(name, "/")):
			return UsageError("%q is not a name", arg)
		case n.Namespace != "" && has && parent != n.Namespace:
			return UsageError("%q is not in namespace %s", arg, n.Namespace)
		}
	}
	n.Exact = InNamespace(n.Namespace, args)
	return nil
}

// Only returns the single argument if it names its namespace too, for requests that take one.
func (n Names) Only() string {
	if len(n.Exact) == 1 && strings.Contains(n.Exact[0], "/") && !n.lenient {
		return n.Exact[0]
	}
	return ""
}

// means reports whether an argument means a name: all of it, or its last part.
func (n Names) means(arg, name string) bool {
	parent, last, _ := strings.Cut(name, "/")
	return arg == name || !strings.Contains(arg, "/") && (arg == last || n.parents && arg == parent)
}

// Keep reports whether a name is in the list.
func (n Names) Keep(name string) bool {
	if namespace, _, _ := strings.Cut(name, "/"); n.Namespace != "" && namespace != n.Namespace {
		return false
	}
	return len(n.Exact) == 0 || slices.ContainsFunc(n.Exact, func(arg string) bool { return n.means(arg, name) })
}

// missing returns an error if an argument means none of the names that there are.
func (n Names) missing(noun string, names []string) error {
	for _, arg := range n.Exact {
		if !n.lenient && !slices.ContainsFunc(names, func(name string) bool { return n.means(arg, name) }) {
			return noSuch(noun, arg, names)
		}
	}
	return nil
}

func noSuch(noun, arg string, all []string) error {
	slices.Sort(all)
	try := "run the same command without names for all"
	if near := api.Similar(slices.Compact(all), arg); len(near) > 0 {
		try = "did you mean " + strings.Join(near, ", ") + "?"
	}
	return Exit(ExitProblem, &api.Failure{Reason: api.NotFound, Message: fmt.Sprintf("there is no %s %q", noun, arg), Try: try})
}
