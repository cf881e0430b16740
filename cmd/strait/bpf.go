package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"strait.io/strait/daemon/api"
	"strait.io/strait/datapath/socklb/inspect"
	"strait.io/strait/internal/l4"
)

const bpfLong = `Show what the kernel's maps hold, read directly from their pins. This needs root but no daemon, and
shows the same as "bpftool map dump pinned". If straitd answers, frontends are shown with the names
of their services.

FILTER is a service (default/serve, default/serve:http) or the address of a frontend, with or
without port and protocol (241.7.3.9, 241.7.3.9:80, [fd00::9]:80/TCP).`

const bpfExample = `  strait bpf services
  strait bpf slots 241.7.3.9:80/TCP    # of one frontend`

func (a *app) bpfCommand() *cobra.Command {
	var pins string
	cmd := &cobra.Command{
		Use:     "bpf",
		Short:   "Show what the kernel's maps hold, even without straitd",
		Long:    bpfLong,
		Example: bpfExample,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	addPinsFlag(cmd, &pins)
	cmd.AddCommand(
		bpfList(a, &pins, bpfTable[bpfService]{name: "services", kind: "BPFServiceList", noun: "frontend", read: readServices,
			short: "List the frontends, with their sets and counters",
			long: "INDEX is the number of the frontend's set, which has COUNT slots, starting at BASE. A set without\n" +
				"slots refuses connections."}),
		bpfList(a, &pins, bpfTable[bpfBackend]{name: "backends", kind: "BPFBackendList", noun: "backend", read: readBackends,
			short: "List the backends of each frontend, with their weights and counters",
			long: "WEIGHT is relative to the frontend's other backends. CONNECTS counts connections through this\n" +
				"frontend."}),
		bpfList(a, &pins, bpfTable[bpfSlot]{name: "slots", kind: "BPFSlotList", noun: "slot", read: readSlots,
			short: "List the slots that make up the sets",
			long: "A slot keeps THRESHOLD/2^32 (KEEPS) of the connections drawn for it; the rest go to the slot ALIAS,\n" +
				"counted from the first slot of the frontend's set."}),
		bpfList(a, &pins, bpfTable[bpfAffinity]{name: "affinity", kind: "BPFAffinityList", noun: "affine client", read: readAffinity,
			short: "List the clients that keep their backend",
			long: "CLIENT is the cookie of a network namespace (a pod). IDLE is the time since its last connection.\n" +
				"LEFT is how long the client still gets the same backend; the row stays after that, until its place\n" +
				"is needed."}),
		bpfList(a, &pins, bpfTable[bpfSocket]{name: "sockets", kind: "BPFSocketList", noun: "flow", read: readSockets,
			short: "List the sockets that were load-balanced",
			long: "COOKIE is the kernel's number for the socket (ss -e shows it as sk:). A socket that sends to\n" +
				"several frontends has a row for each."}),
	)
	return cmd
}

// bpfTable describes one list.
type bpfTable[T bpfItem] struct {
	name, kind, noun, short, long string
	read                          func(pinned, pinnedMaps) ([]T, error)
}

// bpfAnswer is the data of a list.
type bpfAnswer[T bpfItem] struct {
	api.Meta
	Pins string `json:"pins"`
	// DaemonError is why the items have no service names.
	DaemonError string `json:"daemonError,omitempty"`
	Items       []T    `json:"items"`
}

func bpfList[T bpfItem](a *app, pins *string, table bpfTable[T]) *cobra.Command {
	return &cobra.Command{
		Use:               table.name + " [FILTER]",
		Short:             table.short,
		Long:              table.short + ".\n\n" + table.long + "\n\nFILTER is a service or the address of a frontend: see strait bpf --help.",
		Example:           "  strait bpf " + table.name + "\n  strait bpf " + table.name + " default/serve    # of one service",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: a.completeService,
		RunE: func(cmd *cobra.Command, args []string) error {
			filter, err := parseMapFilter(args)
			if err != nil {
				return err
			}
			from := a.findPins(cmd.Context(), *pins)
			if filter, err = filter.resolve(from); err != nil {
				return err
			}
			items, err := table.items(a, from, filter)
			if err != nil {
				return err
			}
			answer := bpfAnswer[T]{api.Meta{APIVersion: api.APIVersion, Kind: table.kind}, from.dir, from.whyUnknown(), items}
			if done, err := a.data(answer); done {
				return err
			}
			p := a.printer()
			p.line("maps pinned at %s, read just now · %s", from.dir, api.Count(len(items), table.noun))
			p.table(withoutEmpty(api.Table(items, a.now())))
			if from.unknown != nil {
				a.hint("frontends have no names here: %s", from.whyUnknown())
			}
			return nil
		},
	}
}

// items reads the list and keeps what the filter selects. An empty list is a valid answer, unless
// no frontend matches the filter.
func (table bpfTable[T]) items(a *app, from pinned, filter mapFilter) ([]T, error) {
	maps, err := a.kernel.open(from.dir)
	if err != nil {
		return nil, pinsError(from.dir, err)
	}
	defer maps.Close()
	all, err := table.read(from, maps)
	if err != nil {
		return nil, pinsError(from.dir, err)
	}
	items := []T{}
	for _, item := range all {
		if filter.matches(item.at()) {
			items = append(items, item)
		}
	}
	if len(items) > 0 || filter.text == "" {
		return items, nil
	}
	frontends, err := maps.Services()
	if err != nil {
		return nil, pinsError(from.dir, err)
	}
	if !slices.ContainsFunc(frontends, func(r inspect.ServiceRow) bool { return filter.matches(r.Addr) }) {
		return nil, &exitError{exitProblem, &api.Failure{Reason: api.NotFound,
			Message: fmt.Sprintf("no frontend in the maps pinned at %s matches %s", from.dir, filter.text),
			Try:     "list the frontends with strait bpf services"}}
	}
	return items, nil
}

func readServices(from pinned, maps pinnedMaps) (out []bpfService, err error) {
	rows, err := maps.Services()
	for _, r := range rows {
		out = append(out, bpfService{from.name(r.Addr), r.Index, r.Base, r.Count, r.AffinitySeconds, r.Connects, r.Refused})
	}
	return out, err
}

func readBackends(from pinned, maps pinnedMaps) (out []bpfBackend, err error) {
	rows, err := maps.Backends()
	for _, r := range rows {
		out = append(out, bpfBackend{from.name(r.Frontend), r.Backend, r.Weight, r.Connects})
	}
	return out, err
}

func readSlots(from pinned, maps pinnedMaps) (out []bpfSlot, err error) {
	rows, err := maps.Slots()
	for _, r := range rows {
		out = append(out, bpfSlot{r.Slot, from.name(r.Frontend), r.Backend, r.Threshold, r.Alias})
	}
	return out, err
}

func readAffinity(from pinned, maps pinnedMaps) (out []bpfAffinity, err error) {
	frontends, err := maps.Services()
	if err != nil {
		return nil, err
	}
	timeout := make(map[l4.Addr]float64, len(frontends))
	for _, f := range frontends {
		timeout[f.Addr] = float64(f.AffinitySeconds)
	}
	rows, err := maps.Affinity()
	for _, r := range rows {
		left := max(timeout[r.Frontend]-r.IdleSeconds, 0)
		out = append(out, bpfAffinity{from.name(r.Frontend), r.Client, r.Backend, r.IdleSeconds, left})
	}
	return out, err
}

func readSockets(from pinned, maps pinnedMaps) (out []bpfSocket, err error) {
	rows, err := maps.Sockets()
	for _, r := range rows {
		frontend := l4.New(r.Frontend.Addr(), r.Frontend.Port(), r.Proto)
		out = append(out, bpfSocket{r.Cookie, from.name(frontend), r.Backend, r.Connected, r.Overflow})
	}
	return out, err
}
