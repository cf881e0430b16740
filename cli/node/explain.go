package node

import (
	"bytes"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"strait.io/strait/cli"
	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/client"
	"strait.io/strait/daemon/api/table"
	"strait.io/strait/internal/problem"
)

const explainLong = `Explain where new connections from this node to a service go, and why. It lists every endpoint that
any cluster exports, by tier from near to far, with its share and the reason it is in use or left
out. If the kernel's map holds a different choice, the frontend's line says so. RTT is the time of
a round trip to the node of another cluster.

PORT is a port's name or number; without it every port is shown. --from explains the choice of
another node, as this one computes it: NODE in this cluster, CLUSTER/NODE, or the node of a pod,
which is an address, or NAMESPACE/POD or CLUSTER/NAMESPACE/POD if it is an endpoint of a service.

--what-if says where connections would go after a change, for the service or, without one, for all
services that the change moves. A change is "cluster NAME down", "node CLUSTER/NAME dead",
"drain CLUSTER", "drain CLUSTER/NODE" or "scale CLUSTER to NUMBER". Nothing is changed.

--at explains where connections went at a moment of the past, from what the node noted then; strait
timeline shows what there is. The moment is by the node's clock, and in your time zone:
` + cli.Times + `.`

func ExplainCommand(a *cli.App) *cobra.Command {
	var from, change, namespace, at string
	var watch bool
	c := &cobra.Command{
		Use:   "explain NAMESPACE/NAME[:PORT]",
		Short: "Explain why connections to a service go where they go",
		Long:  explainLong,
		Example: `  strait explain default/serve
  strait explain default/serve:http -o json
  strait explain default/serve --from us-west/n2
  strait explain -n default serve --watch
  strait explain default/serve --at 14:02
  strait explain --what-if "cluster us-east down"`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && cmd.Flags().Changed("what-if") {
				return nil
			}
			return cobra.ExactArgs(1)(cmd, args)
		},
		ValidArgsFunction: a.CompleteService,
		RunE: func(cmd *cobra.Command, args []string) error {
			args = cli.InNamespace(namespace, args)
			if cmd.Flags().Changed("what-if") {
				service, err := cli.OptionalService(args)
				if err != nil {
					return err
				}
				return whatIf(cmd.Context(), a, change, service, from)
			}
			then, err := pastMoment(at, a.Now())
			if err != nil {
				return err
			}
			if watch {
				return watchService(cmd.Context(), a, args[0], from)
			}
			_, err = explainService(cmd.Context(), a, args[0], from, then, nil)
			return err
		},
	}
	c.Flags().SortFlags = false
	c.Flags().StringVarP(&namespace, "namespace", "n", "", "the service's `namespace`, for a NAME without one")
	c.Flags().StringVar(&from, "from", "", "the `node` or pod that connects: see above (default: this node)")
	c.Flags().BoolVarP(&watch, "watch", "w", false, "explain again whenever the choice changes")
	c.Flags().StringVar(&change, "what-if", "", "show where connections would go after this `change`")
	c.Flags().StringVar(&at, "at", "", "explain where connections went at a past `time`: see above")
	c.MarkFlagsMutuallyExclusive("watch", "what-if", "at")
	return c
}

// watchEvery is how often a watched service is looked at.
const watchEvery = time.Second

// watchService explains a service whenever the choice changes, until ctx ends.
func watchService(ctx context.Context, a *cli.App, arg, from string) error {
	var last *api.Service
	for {
		now, err := explainService(ctx, a, arg, from, time.Time{}, last)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		last = now
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(watchEvery):
		}
	}
}

// chosen is what counts as a change for people who watch: not the counters and times.
func chosen(s api.Service) api.Service {
	s.Frontends = slices.Clone(s.Frontends)
	for i := range s.Frontends {
		f := &s.Frontends[i]
		f.Connects, f.Refused, f.Endpoints = 0, 0, slices.Clone(f.Endpoints)
		for j := range f.Endpoints {
			f.Endpoints[j].Connects, f.Endpoints[j].RTT = 0, 0
		}
	}
	return s
}

// explainService explains a service now or, if at is not zero, at a moment of the past, unless the choice is
// the last one. It returns the service.
func explainService(ctx context.Context, a *cli.App, arg, from string, at time.Time, last *api.Service) (*api.Service, error) {
	service, port, err := cli.ParseService(arg)
	if err != nil {
		return nil, err
	}
	answer, err := cli.Ask(ctx, a, func(c *client.Client, ctx context.Context) (*api.Explanation, error) {
		if !at.IsZero() {
			return c.ExplainAt(ctx, service, from, at)
		}
		return c.Explain(ctx, service, from)
	})
	if err != nil {
		return nil, err
	}
	if answer.Service, err = cli.OnlyPort(answer.Service, port); err != nil {
		return nil, err
	}
	if last != nil && reflect.DeepEqual(chosen(*last), chosen(answer.Service)) {
		return last, nil
	}
	if done, err := a.Data(answer); done {
		return &answer.Service, err
	}
	// Written at once: who reads what --watch prints sees whole explanations.
	var text bytes.Buffer
	p := a.Printer()
	p.W = &text
	if last != nil {
		p.Line("")
	}
	if answer.SeenFrom.Past != nil {
		pastHeader(a, p, answer.SeenFrom)
	} else {
		a.Header(p, answer.SeenFrom, "")
	}
	explain(a, p, answer.Service, answer.SeenFrom)
	if _, err := a.Stdout.Write(text.Bytes()); err != nil {
		return nil, fmt.Errorf("write the explanation: %w", err)
	}
	return &answer.Service, nil
}

func explain(a *cli.App, p cli.Printer, s api.Service, from api.Viewpoint) {
	p.Line("%s · %s", s.Name, exportLine(s))
	if len(s.Policies) > 0 {
		p.Line("shared by policy %s", strings.Join(s.Policies, ", "))
	}
	if len(s.Frontends) == 0 {
		p.Line("no frontend: %s", table.Why(s))
	}
	for _, f := range s.Frontends {
		p.Line("")
		p.Line("%s", frontendLine(f, from))
		if len(f.Endpoints) == 0 {
			p.Line("no endpoint: no exporting cluster has a pod behind this port")
			continue
		}
		cli.Show(a, p, table.Explained, table.Candidates(f))
	}
}

// exportLine is what the service is: its type, addresses, and who exports it.
func exportLine(s api.Service) string {
	addresses := make([]string, len(s.IPs))
	for i, ip := range s.IPs {
		addresses[i] = " " + ip.String()
	}
	return fmt.Sprintf("%s%s · exported by %s", s.Type, strings.Join(addresses, ""), strings.Join(s.Exporters, ", "))
}

// frontendLine is the verdict on one frontend: address, where connections go, and whether the
// kernel agrees. An answer computed for another node does not show its kernel. What the map
// holds means little if the program of another load balancer runs first.
func frontendLine(f api.Frontend, from api.Viewpoint) string {
	name := f.Addr.String()
	if f.Port != "" {
		name += " (" + f.Port + ")"
	}
	kernel := "kernel map agrees"
	switch {
	case from.Past != nil:
		kernel = "planned again from what was noted"
	case from.Computed:
		kernel = "computed here"
	case !f.InKernel:
		kernel = api.Bad + " the kernel's map differs from the plan"
	case len(f.Ahead) > 0:
		kernel = fmt.Sprintf("%s kernel map agrees, but other software runs first (%s) and may choose instead; see %s",
			api.Warn, strings.Join(f.Ahead, ", "), problem.HooksShared)
	}
	verb := "go"
	if from.Past != nil {
		verb = "went"
	}
	destination := "new connections " + verb + " to " + f.Destination()
	if f.Tier == "" {
		destination = api.Bad + " no backend, connections are refused"
	}
	return fmt.Sprintf("%s · %s · %s", name, destination, kernel)
}
