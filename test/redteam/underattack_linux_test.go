package redteam

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/gossip"
	"strait.io/strait/datapath/socklb/inspect"
)

// memoryLimit is the chart's limit for the daemon.
const memoryLimit = 1 << 30

// TestUnderAttack: outsiders and a signed node do all that they can at once. Clients notice nothing, the
// daemon keeps to its memory limit and fills no log. How long changes take is compared with quiet
// runs, which alternate with it; machines that run tests are too noisy for a limit on that.
func TestUnderAttack(t *testing.T) {
	if !inside(t) {
		return
	}
	w := newWorld(t, map[string]byte{"mallory": mallory})
	serve(w, pod(eastNumber))
	calls := w.outsider("call", w.west.frontend(80), w.west.cgroup)
	var quiet, attacked []time.Duration
	rss, logged := w.west.rss(), w.west.log.count()
	began := time.Now()
	for range 3 {
		quiet = append(quiet, w.changes(&rss))
		end := w.everybody()
		attacked = append(attacked, w.changes(&rss))
		if !w.west.alive("mallory") {
			t.Error("the signed node is not heard, so it was no attack")
		}
		end()
	}
	took := time.Since(began)
	s, err := w.west.status()
	w.must(err)
	calls.stop()
	made, failed := strings.Count(calls.out.String(), "answered\n"), strings.Count(calls.out.String(), "failed")
	logged = w.west.log.count() - logged
	t.Logf("%d of %d calls failed; RSS at most %d MiB; %d lines of log in %s; the slowest of %d changes: quiet %v, attacked %v, ratio of the medians %.1f; refused: %v",
		failed, made+failed, rss>>20, logged, took.Round(time.Second), changed, quiet, attacked, float64(median(attacked))/float64(median(quiet)), s.Refused)
	if failed > 0 || made < 1000 {
		t.Errorf("%d calls failed, %d were answered", failed, made)
	}
	if rss > memoryLimit {
		t.Errorf("the daemon took %d MiB", rss>>20)
	}
	if perMinute := float64(logged) / took.Minutes(); perMinute > 100 {
		t.Errorf("%.0f lines of log a minute", perMinute)
	}
}

// everybody attacks west until end is called: strangers, and a node of a cluster that is pinned, which
// publishes as fast as it can.
func (w *world) everybody() (end func()) {
	w.Helper()
	var all []*outsider
	for _, attack := range []string{"silent", "flood", "garbage", "replay"} {
		all = append(all, w.west.outsider(attack))
	}
	root := w.roots["mallory"]
	a := w.attack(origin("mallory", "n0"), &gossip.Authority{Root: &root, Node: authority.PrivateKey{66}})
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
				a.Publish(content("n0", mallory, netip.AddrFrom4([4]byte{10, mallory, 1, byte(n)})))
			}
		}
	}()
	return func() {
		close(stop)
		<-ended
		for _, o := range all {
			o.stop()
		}
		a.end()
	}
}

// changed is how many changes a round has.
const changed = 60

// changes has east add or remove a pod again and again, and returns the longest time until west's kernel
// knew. It notes the most memory that west has in use.
func (w *world) changes(rss *uint64) (slowest time.Duration) {
	w.Helper()
	spare := netip.MustParseAddr("10.2.1.8")
	for n := range changed {
		addrs := []netip.Addr{pod(eastNumber)}
		if n%2 == 0 {
			addrs = append(addrs, spare)
		}
		w.east.write("manifests/serve.yaml", manifestServes(addrs...))
		began := time.Now()
		w.west.has(spare, n%2 == 0)
		slowest = max(slowest, time.Since(began))
		*rss = max(*rss, w.west.rss())
		time.Sleep(50 * time.Millisecond)
	}
	return slowest
}

// has waits until the kernel balances over an address, or does not.
func (m *member) has(a netip.Addr, want bool) {
	m.w.Helper()
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		got, err := m.backends()
		if err == nil && slices.Contains(got, a) == want {
			return
		}
		if time.Since(began) > 3*patience {
			m.w.Fatalf("%s balances over %v (%v), want %s there: %t", m.cluster, got, err, a, want)
		}
	}
}

// frontend returns where the kernel answers for a port.
func (m *member) frontend(port uint16) netip.AddrPort {
	m.w.Helper()
	all, err := inspect.Read(m.pinned())
	m.w.must(err)
	for _, f := range all {
		if f.Addr.Port == port && !f.Addr.IP.IsLoopback() {
			return netip.AddrPortFrom(f.Addr.IP, port)
		}
	}
	m.w.Fatalf("no frontend with port %d", port)
	return netip.AddrPort{}
}

// manifestServes is manifestServe with several pods, of which all answer.
func manifestServes(pods ...netip.Addr) string {
	var list []string
	for _, p := range pods {
		list = append(list, "{addresses: ["+p.String()+"], nodeName: n1}")
	}
	one := "{addresses: [" + pods[0].String() + "], nodeName: n1}"
	return strings.Replace(manifestServe(pods[0]), one, strings.Join(list, ", "), 1)
}

// serve makes pods answer on port 8080, and the spare one too.
func serve(w *world, pods ...netip.Addr) {
	w.Helper()
	for _, p := range append(pods, netip.MustParseAddr("10.2.1.8")) {
		if out, err := exec.Command("ip", "address", "add", p.String()+"/32", "dev", "lo").CombinedOutput(); err != nil {
			w.Fatalf("%v: %s", err, out)
		}
		l, err := net.Listen("tcp", netip.AddrPortFrom(p, 8080).String())
		w.must(err)
		w.Cleanup(func() { l.Close() })
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = io.WriteString(conn, "pod")
				conn.Close()
			}
		}()
	}
}

// call calls an address again and again, and says how each call went.
func call(to netip.AddrPort) {
	for ; ; time.Sleep(10 * time.Millisecond) {
		if err := callOnce(to); err != nil {
			fmt.Println("failed:", err)
		} else {
			fmt.Println("answered")
		}
	}
}

func callOnce(to netip.AddrPort) error {
	conn, err := net.DialTimeout("tcp", to.String(), 5*time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	answer, err := io.ReadAll(conn)
	if err == nil && !bytes.Equal(answer, []byte("pod")) {
		err = errors.New("nothing was answered")
	}
	return err
}

func median(ds []time.Duration) time.Duration {
	s := slices.Sorted(slices.Values(ds))
	return s[len(s)/2]
}
