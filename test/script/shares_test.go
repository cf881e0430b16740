package script

import (
	"fmt"
	"math"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"syscall"

	"strait.io/strait/datapath/socklb/inspect"
	"strait.io/strait/internal/l4"
)

// looked is a load balancer of the kernel, with what its maps count.
type looked interface {
	attached
	Look(func(*inspect.Reader) error) error
}

// maxShareError is how far a share that is counted can be from the planned one, in percentage points: six
// times the largest deviation of 100,000 draws is 0.95.
const maxShareError = 1.0

// cmdShares connects many sockets to the first frontend of a service, and checks that each endpoint gets
// the share that the plan says. No packet is sent, as for dial.
func cmdShares(w *world, args []string) error {
	n, err := w.node(args[0])
	if err != nil {
		return err
	}
	if _, err := w.frontends(n); err != nil {
		return err
	}
	lb, ok := n.lb.(looked)
	if !ok {
		return fmt.Errorf("%s has no load balancer of the kernel: [kernel] guards what needs one", args[0])
	}
	connects, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	want := map[netip.AddrPort]float64{}
	var at l4.Addr
	for _, i := range n.result.Imports {
		if fs := i.Frontends(); i.Service.String() == args[1] && len(fs) > 0 {
			at = fs[0].Addr
			total := 0.0
			for _, v := range fs[0].Choice.Verdicts {
				total += float64(v.Weight)
			}
			for _, v := range fs[0].Choice.Verdicts {
				want[v.Addr] = float64(v.Weight) / total
			}
		}
	}
	before, err := counts(lb, at)
	if err == nil {
		err = w.connect(lb.Cgroup(), at, connects)
	}
	if err != nil {
		return err
	}
	got, err := counts(lb, at)
	if err != nil {
		return err
	}
	sum := uint64(0)
	for a := range got {
		got[a] -= before[a]
		sum += got[a]
	}
	if sum < uint64(connects) {
		return fmt.Errorf("%d connections were counted of %d", sum, connects)
	}
	for a, share := range want {
		if counted := float64(got[a]) / float64(sum); 100*math.Abs(counted-share) > maxShareError {
			return fmt.Errorf("%s got %.2f %% of %d connections, want %.2f %%", a, 100*counted, sum, 100*share)
		}
	}
	fmt.Fprintln(&w.out, "as planned")
	return nil
}

// counts returns how many connections each backend of a frontend got.
func counts(lb looked, at l4.Addr) (map[netip.AddrPort]uint64, error) {
	out := map[netip.AddrPort]uint64{}
	err := lb.Look(func(r *inspect.Reader) error {
		return r.Connects(func(frontend l4.Addr, backend netip.AddrPort, connects uint64) {
			if frontend == at {
				out[backend] = connects
			}
		})
	})
	return out, err
}

// connect makes processes of a cgroup connect UDP sockets, which have no route.
func (w *world) connect(cgroup string, to l4.Addr, times int) error {
	f, err := os.Open(cgroup)
	if err != nil {
		return err
	}
	defer f.Close()
	network := "udp"
	if to.Proto == l4.TCP {
		network = "tcp"
	}
	loop := fmt.Sprintf("for ((i = 0; i < %d; i++)); do true 9<>/dev/%s/%s/%d; done 2>/dev/null; true", times, network, to.IP, to.Port)
	cmd := exec.Command("bash", "-c", loop)
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(f.Fd())}
	return w.inside(cmd.Run)
}
