package kernel

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"strait.io/strait/cli"
	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/table"
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

// BPFCommand shows the maps.
func BPFCommand(in *cli.App, k Kernel) *cobra.Command {
	a := &maps{in, k}
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
		bpfList(a, &pins, bpfTable[BPFService]{name: "services", kind: "BPFServiceList", noun: "frontend", read: readServices,
			short: "List the frontends, with their sets and counters",
			long: "INDEX is the number of the frontend's set, which has COUNT slots, starting at BASE. A set without\n" +
				"slots refuses connections."}),
		bpfList(a, &pins, bpfTable[BPFBackend]{name: "backends", kind: "BPFBackendList", noun: "backend", read: readBackends,
			short: "List the backends of each frontend, with their weights and counters",
			long: "WEIGHT is relative to the frontend's other backends. CONNECTS counts connections through this\n" +
				"frontend."}),
		bpfList(a, &pins, bpfTable[BPFSlot]{name: "slots", kind: "BPFSlotList", noun: "slot", read: readSlots,
			short: "List the slots that make up the sets",
			long: "A slot keeps THRESHOLD/2^32 (KEEPS) of the connections drawn for it; the rest go to the slot ALIAS,\n" +
				"counted from the first slot of the frontend's set."}),
		bpfList(a, &pins, bpfTable[BPFAffinity]{name: "affinity", kind: "BPFAffinityList", noun: "affine client", read: readAffinity,
			short: "List the clients that keep their backend",
			long: "CLIENT is the cookie of a network namespace (a pod). IDLE is the time since its last connection.\n" +
				"LEFT is how long the client still gets the same backend; the row stays after that, until its place\n" +
				"is needed."}),
		bpfList(a, &pins, bpfTable[BPFSocket]{name: "sockets", kind: "BPFSocketList", noun: "flow", read: readSockets,
			short: "List the sockets that were load-balanced",
			long: "COOKIE is the kernel's number for the socket (ss -e shows it as sk:). A socket that sends to\n" +
				"several frontends has a row for each."}),
	)
	return cmd
}

// bpfTable describes one list.
type bpfTable[T BPFItem] struct {
	name, kind, noun, short, long string
	read                          func(pinned, PinnedMaps) ([]T, error)
}

// BPFAnswer is the data of a list.
type BPFAnswer[T BPFItem] struct {
	api.Meta
	Pins string `json:"pins"`
	// DaemonError is why the items have no service names.
	DaemonError string `json:"daemonError,omitempty"`
	Items       []T    `json:"items"`
}

func bpfList[T BPFItem](a *maps, pins *string, list bpfTable[T]) *cobra.Command {
	return cli.Listing(&cobra.Command{
		Use:               list.name + " [FILTER]",
		Short:             list.short,
		Long:              list.short + ".\n\n" + list.long + "\n\nFILTER is a service or the address of a frontend: see strait bpf --help.",
		Example:           "  strait bpf " + list.name + "\n  strait bpf " + list.name + " default/serve    # of one service",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: a.CompleteService,
		RunE: func(cmd *cobra.Command, args []string) error {
			filter, err := parseMapFilter(args)
			if err != nil {
				return err
			}
			from := a.findPins(cmd.Context(), *pins)
			if filter, err = filter.resolve(from); err != nil {
				return err
			}
			items, err := list.items(a, from, filter)
			if err != nil {
				return err
			}
			answer := BPFAnswer[T]{api.Meta{APIVersion: api.APIVersion, Kind: list.kind}, from.dir, from.whyUnknown(), items}
			if done, err := a.Names(table.Table[T]{Name: T.called}.Names(items)); done {
				return err
			}
			if done, err := a.Data(answer); done {
				return err
			}
			p := a.Printer()
			p.Line("maps pinned at %s, read just now · %s", from.dir, api.Count(len(items), list.noun))
			header, rows := table.Of(items, a.Now())
			if a.Output != "wide" {
				header, rows = cli.WithoutEmpty(header, rows)
			}
			p.Table(header, rows)
			if from.unknown != nil {
				a.Hint("frontends have no names here: %s", from.whyUnknown())
			}
			return nil
		},
	})
}

// items reads the list and keeps what the filter selects. An empty list is a valid answer, unless
// no frontend matches the filter.
func (list bpfTable[T]) items(a *maps, from pinned, filter mapFilter) ([]T, error) {
	pinned, err := a.kernel.Open(from.dir)
	if err != nil {
		return nil, pinsError(from.dir, err)
	}
	defer pinned.Close()
	all, err := list.read(from, pinned)
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
	frontends, err := pinned.Services()
	if err != nil {
		return nil, pinsError(from.dir, err)
	}
	if !slices.ContainsFunc(frontends, func(r inspect.ServiceRow) bool { return filter.matches(r.Addr) }) {
		return nil, cli.Exit(cli.ExitProblem, &api.Failure{Reason: api.NotFound,
			Message: fmt.Sprintf("no frontend in the maps pinned at %s matches %s", from.dir, filter.text),
			Try:     "list the frontends with strait bpf services"})
	}
	return items, nil
}

func readServices(from pinned, maps PinnedMaps) (out []BPFService, err error) {
	rows, err := maps.Services()
	for _, r := range rows {
		out = append(out, BPFService{from.name(r.Addr), r.Index, r.Base, r.Count, r.AffinitySeconds, r.Connects, r.Refused})
	}
	return out, err
}

func readBackends(from pinned, maps PinnedMaps) (out []BPFBackend, err error) {
	rows, err := maps.Backends()
	for _, r := range rows {
		out = append(out, BPFBackend{from.name(r.Frontend), r.Backend, r.Weight, r.Connects})
	}
	return out, err
}

func readSlots(from pinned, maps PinnedMaps) (out []BPFSlot, err error) {
	rows, err := maps.Slots()
	for _, r := range rows {
		out = append(out, BPFSlot{r.Slot, from.name(r.Frontend), r.Backend, r.Threshold, r.Alias})
	}
	return out, err
}

func readAffinity(from pinned, maps PinnedMaps) (out []BPFAffinity, err error) {
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
		out = append(out, BPFAffinity{from.name(r.Frontend), r.Client, r.Backend, r.IdleSeconds, left})
	}
	return out, err
}

func readSockets(from pinned, maps PinnedMaps) (out []BPFSocket, err error) {
	rows, err := maps.Sockets()
	for _, r := range rows {
		frontend := l4.New(r.Frontend.Addr(), r.Frontend.Port(), r.Proto)
		out = append(out, BPFSocket{r.Cookie, from.name(frontend), r.Backend, r.Connected, r.Overflow})
	}
	return out, err
}
