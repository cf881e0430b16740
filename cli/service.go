package cli

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/client"
)

// CompletionTimeout keeps shell completion quick when the daemon is slow.
const CompletionTimeout = time.Second

// ParseService reads NAMESPACE/NAME[:PORT]; port is a name or a number, "" for all.
func ParseService(arg string) (service, port string, err error) {
	service, port, hasPort := strings.Cut(arg, ":")
	namespace, name, hasName := strings.Cut(service, "/")
	switch {
	case !hasName && namespace != "":
		return "", "", UsageError("service %q has no namespace: write NAMESPACE/NAME, such as default/%s", arg, namespace)
	case namespace == "" || name == "" || strings.Contains(name, "/"):
		return "", "", UsageError("service %q: want NAMESPACE/NAME, such as default/serve", arg)
	case hasPort && port == "":
		return "", "", UsageError("service %q has no port after the colon: write a port's name or number", arg)
	}
	return service, port, nil
}

// OptionalService parses the optional argument that limits a list to one service.
func OptionalService(args []string) (string, error) {
	if len(args) == 0 {
		return "", nil
	}
	service, port, err := ParseService(args[0])
	if err == nil && port != "" {
		err = UsageError("%q: a port is not accepted here; strait explain takes one", args[0])
	}
	return service, err
}

// OnlyPort keeps the frontends of one port, given by name or number.
func OnlyPort(s api.Service, port string) (api.Service, error) {
	if port == "" {
		return s, nil
	}
	var have []string
	for _, f := range s.Frontends {
		have = append(have, portText(f))
	}
	s.Frontends = slices.DeleteFunc(slices.Clone(s.Frontends), func(f api.Frontend) bool {
		return f.Port != port && strconv.Itoa(int(f.Addr.Port)) != port
	})
	if len(s.Frontends) == 0 {
		slices.Sort(have)
		return s, &ExitError{ExitProblem, &api.Failure{
			Reason:  api.NotFound,
			Message: "service " + s.Name + " has no port " + port,
			Try:     "choose one of its ports: " + strings.Join(slices.Compact(have), ", "),
		}}
	}
	return s, nil
}

// portText is "80/TCP (http)".
func portText(f api.Frontend) string {
	text := strconv.Itoa(int(f.Addr.Port)) + "/" + f.Addr.Proto.String()
	if f.Port != "" {
		text += " (" + f.Port + ")"
	}
	return text
}

// CompleteService offers the names of the services that the daemon knows. Without a daemon it
// offers none.
func (a *App) CompleteService(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), CompletionTimeout)
	defer cancel()
	list, err := Ask(ctx, a, (*client.Client).Services)
	if err != nil {
		cobra.CompDebugln(err.Error(), false)
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, s := range list.Items {
		names = append(names, s.Name)
	}
	return offer(names, prefix)
}
