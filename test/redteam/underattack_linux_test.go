package redteam

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/clustermesh/gossip"
	"strait.io/strait/datapath/socklb/inspect"
	"strait.io/strait/internal/testutil"
)

// memoryLimit is the chart's limit for the daemon.
const memoryLimit = 1 << 30

// measuredEnv names the file that gets what TestUnderAttack measures, for make bench. Then no time is
// judged here.
const measuredEnv = "STRAIT_REDTEAM_MEASURED"

// measuredAttempts is how many attempts make bench gets; it takes their median.
const measuredAttempts = 5

// maxStart is how long the signed node may take to start: it yields too, and so took half a minute on a
// busy machine.
const maxStart = 5 * time.Minute

// slower is how much longer changes may take under attack, in the best of maxAttempts: whatever else
// runs on the machine disturbs the slowest of them.
const (
	slower      = 2.0
	maxAttempts = 4
)

// TestUnderAttack: outsiders and a signed node do all that they can at once. Clients notice nothing, the
// daemon keeps to its memory limit and fills no log, and other nodes' changes arrive nearly as fast as
// without the attack.
//
// The attackers' machines would not share the processors of the daemon, so here the attackers only get
// what is left of them (testutil.Yield). They still take caches and time in the kernel, as any program does. So
// they are compared with as many programs that only compute, in rounds that alternate; and the best of a
// few attempts counts. On two processors that other work wanted too (load 10 to 20), the ratio was 1.0 to
// 1.2 for p50, 1.1 to 1.4 for p90 and 0.1 to 1.4 for p99, and memory stayed at 41 MiB. While refused
// connections were not freed, p99 was up to 8; when straitd made 64 KiB of memory for each datagram, and
// waited 50 ms in each storm, the three were 2.2, 6.4 and 9.4.
func TestUnderAttack(t *testing.T) {
	if !insideAlone(t) {
		return
	}
	w := newWorld(t, map[string]byte{"mallory": mallory})
	serve(w, pod(eastNumber))
	calls := w.outsider("call", w.west.frontend(80), w.west.cgroup)
	rss, logged := w.west.rss(), w.west.log.count()
	began, file := time.Now(), os.Getenv(measuredEnv)
	measured := w.attempts(file != "", &rss)
	took := time.Since(began)
	s, err := w.west.status()
	w.must(err)
	calls.stop()
	made, failed := strings.Count(calls.out.String(), "answered\n"), strings.Count(calls.out.String(), "failed")
	perMinute := float64(w.west.log.count()-logged) / took.Minutes()
	t.Logf("%d of %d calls failed; RSS at most %d MiB; %.0f lines of log a minute, for %s; refused: %v", failed, made+failed, rss>>20, perMinute, took.Round(time.Second), s.Refused)
	if failed > 0 || made < 1000 {
		t.Errorf("%d calls failed, %d were answered: %s", failed, made, strings.ReplaceAll(calls.out.String(), "answered\n", ""))
	}
	if rss > memoryLimit {
		t.Errorf("the daemon took %d MiB", rss>>20)
	}
	if perMinute > 100 {
		t.Errorf("%.0f lines of log a minute", perMinute)
	}
	if file != "" {
		measured["attack_failed_calls"], measured["attack_rss_mb"] = []float64{float64(failed)}, []float64{float64(rss) / 1e6}
		measured["attack_log_lines_per_minute"] = []float64{perMinute}
		text, err := json.Marshal(measured)
		w.must(err, os.WriteFile(file, text, 0o644))
	}
}

// attempts compares until an attempt is within the limits, or measuredAttempts times. It returns the
// ratios, by metric.
func (w *world) attempts(measure bool, rss *uint64) map[string][]float64 {
	w.Helper()
	all := map[string][]float64{}
	for n := 1; ; n++ {
		ok := true
		for p, ratio := range w.attempt(rss) {
			all["attack_"+p+"_ratio"] = append(all["attack_"+p+"_ratio"], ratio)
			ok = ok && ratio <= slower
		}
		switch {
		case measure && n < measuredAttempts:
		case measure, ok:
			return all
		case n == maxAttempts:
			w.Error("other nodes' changes take too long under attack")
			return all
		}
	}
}

// attempt returns how much longer changes take under attack, by percentile, and notes the most memory
// that west has in use.
func (w *world) attempt(rss *uint64) map[string]float64 {
	w.Helper()
	var quiet, attacked []time.Duration
	for range 3 {
		end := w.everybody("burn", "burn", "burn", "burn", "burn")
		quiet = append(quiet, w.changes(rss)...)
		end()
		end = w.everybody("silent", "flood", "garbage", "replay", "publish")
		testutil.Eventually(w, maxStart, func() error {
			if !w.west.alive("mallory") {
				return errors.New("the signed node is not heard, so it is no attack")
			}
			return nil
		})
		attacked = append(attacked, w.changes(rss)...)
		end()
	}
	ratios := map[string]float64{}
	for _, p := range []float64{50, 90, 99} {
		q, a := percentile(quiet, p), percentile(attacked, p)
		ratio := float64(a) / float64(q)
		w.Logf("change to map, p%.0f of %d: %s quiet, %s attacked, ratio %.2f; RSS %d MiB", p, len(quiet),
			q.Round(100*time.Microsecond), a.Round(100*time.Microsecond), ratio, w.west.rss()>>20)
		ratios[fmt.Sprintf("p%.0f", p)] = ratio
	}
	return ratios
}

// everybody runs outsiders that yield to the daemons, until end is called.
func (w *world) everybody(kinds ...string) (end func()) {
	w.Helper()
	var all []*outsider
	for _, kind := range kinds {
		all = append(all, w.west.outsider(kind))
	}
	return func() {
		for _, o := range all {
			o.stop()
		}
	}
}

// burn only computes.
func burn(netip.AddrPort) {
	for n := 0; ; n++ {
		_ = sha256.Sum256(binary.BigEndian.AppendUint64(nil, uint64(n)))
	}
}

// publish is a node of mallory, with the key and the root of its cluster, which publishes as fast as it can.
func publish(to netip.AddrPort) {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	root := rootOf("mallory")
	g, err := gossip.New(gossip.Config{
		Self: origin("mallory", "n0"), Bind: gossipOf(mallory), Keys: gossipKeys, Seeds: []string{to.String()}, StateDir: dir,
		Authority: &gossip.Authority{Root: &root, Node: authority.PrivateKey{mallory}},
	})
	if err != nil {
		panic(err)
	}
	go func() {
		for n := 0; ; n++ {
			g.Publish(content("n0", mallory, netip.AddrFrom4([4]byte{10, mallory, 1, byte(n)})))
		}
	}()
	panic(g.Run(context.Background()))
}

// changed is how many changes a round has.
const changed = 60

// changes has east add or remove a pod again and again, and returns how long each took until west's kernel
// knew. It notes the most memory that west has in use.
func (w *world) changes(rss *uint64) (took []time.Duration) {
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
		took = append(took, time.Since(began))
		*rss = max(*rss, w.west.rss())
		time.Sleep(50 * time.Millisecond)
	}
	return took
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

// hasAddress gives an address to the test's network namespace. Connects to its free ports are refused then, as
// a machine does that is up.
func (w *world) hasAddress(a netip.Addr) {
	w.Helper()
	if out, err := exec.Command("ip", "address", "add", a.String()+"/32", "dev", "lo").CombinedOutput(); err != nil {
		w.Fatalf("%v: %s", err, out)
	}
}

// serve makes pods answer on port 8080, and the spare one too.
func serve(w *world, pods ...netip.Addr) {
	w.Helper()
	for _, p := range append(pods, netip.MustParseAddr("10.2.1.8")) {
		w.hasAddress(p)
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

func percentile(ds []time.Duration, p float64) time.Duration {
	s := slices.Sorted(slices.Values(ds))
	return s[min(len(s)-1, int(float64(len(s))*p/100))]
}
