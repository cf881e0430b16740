package kube

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"strait.io/strait/internal/testutil"
	"strait.io/strait/test/kubelab"
)

// load is a pod that calls a Service of the other cluster all the time: container new with a
// connection for each call, container kept with one connection for all. Container beside calls a
// pod of its own cluster by its address, as new does, and strait has no part in that. The logs are
// written by the node, whatever the API server does.
type load struct {
	o             *ops
	cluster, name string
}

// loadNode is the node of c1 on which these pods run.
const loadNode = "c1n1"

// newRate and keptRate are how often a second a container calls, for each new connection and by the kept one.
// A failure is seen to 0.04 s. More would slow down what is tested: each new connection costs the machine
// some milliseconds.
const newRate, keptRate = 25, 10

// rateOf is how often a second a container calls.
func rateOf(container string) int {
	if strings.HasSuffix(container, "kept") {
		return keptRate
	}
	return newRate
}

// connectTimeout is how long a new connection may take, in seconds. On a busy machine the tunnel's process
// waits for the processor, and loses packets meanwhile. One that is lost is sent again after a second.
const connectTimeout = "1.5"

// keptTimeout is how long a call by a kept connection may take, in seconds. TCP sends a lost packet again
// after 0.2 s, and waits twice as long after each further loss: its fifth try is after 6.2 s. What counts is
// that the connection lives.
const keptTimeout = "10"

// caller is one curl: --rate bounds the log, not the calls' outcome. It writes to stderr, which has
// no buffer that would hold lines, and so their time, back.
const caller = `  - {name: %s, image: "localhost/shell:1", command: [curl, -s, --connect-timeout, "` + connectTimeout + `", --max-time, "%s", --rate, %d/s, -o, /dev/null, ` +
	`-w, '%%{stderr}%%{http_code} %%{num_connects} %%{errormsg}\n', %s "http://%s/hostname?[1-100000000]"]}
`

// call is a line of the log.
type call struct {
	ended    time.Time
	ok       bool
	connects string
	message  string
}

func (o *ops) startLoad(t *testing.T, name string) load {
	t.Helper()
	return o.startLoadOn(t, name, "ops-c2")
}

// startLoadOn is startLoad for an import.
func (o *ops) startLoadOn(t *testing.T, name, service string) load {
	t.Helper()
	return o.startLoads(t, name, map[string]string{"": o.vip(t, "c1", service)})
}

// startLoads calls several addresses from one pod. The names of their containers begin with what the map
// calls them.
func (o *ops) startLoads(t *testing.T, name string, addresses map[string]string) load {
	t.Helper()
	const newConnection = `-H, "Connection: close",`
	_, near := podOn(t, "c1", "ops-c1", "c1n2")
	containers, names := fmt.Sprintf(caller, "beside", "2", newRate, newConnection, near+":8080"), []string{"beside"}
	for prefix, address := range addresses {
		containers += fmt.Sprintf(caller, prefix+"new", "2", newRate, newConnection, address) + fmt.Sprintf(caller, prefix+"kept", keptTimeout, keptRate, "", address)
		names = append(names, prefix+"new", prefix+"kept")
	}
	o.shell(t, "c1", name, loadNode, "", "  containers:\n"+containers)
	l := load{o, "c1", name}
	testutil.Eventually(t, 30*time.Second, func() error {
		for _, container := range names {
			if calls := l.calls(t, container, time.Time{}); len(calls) < rateOf(container) || !calls[len(calls)-1].ok {
				return fmt.Errorf("%s: fewer than %d calls, or the last one failed", container, rateOf(container))
			}
		}
		return nil
	})
	return l
}

// calls are those that ended since a time.
func (l load) calls(t *testing.T, container string, since time.Time) (out []call) {
	t.Helper()
	log, err := l.o.LogOf(loadNode, kubelab.Container{Namespace: "default", Pod: l.name, Name: container})
	must(t, err)
	for line := range strings.Lines(log) {
		fields := strings.SplitN(strings.TrimSpace(line), " ", 4)
		ended, err := time.Parse(time.RFC3339Nano, fields[0])
		must(t, err)
		if len(fields) < 3 || ended.Before(since) {
			continue
		}
		out = append(out, call{ended, fields[1] == "200", fields[2], strings.Join(fields[3:], " ")})
	}
	return out
}

// mustBeWhole demands that no call failed since a time, and that the kept connection is still the
// one. A new connection that timed out while the client beside stood still too is the machine's,
// which has too much to do, and not strait's.
func (l load) mustBeWhole(t *testing.T, since time.Time) {
	t.Helper()
	l.oneMustBeWhole(t, "", since)
}

// oneMustBeWhole is mustBeWhole for one of several addresses.
func (l load) oneMustBeWhole(t *testing.T, prefix string, since time.Time) {
	t.Helper()
	for _, flaw := range l.flaws(t, prefix, since) {
		t.Error(flaw)
	}
}

// flaws lists the calls that failed or had to reconnect: at most five of each container.
func (l load) flaws(t *testing.T, prefix string, since time.Time) (out []string) {
	t.Helper()
	stalls := stallsOf(l.calls(t, "beside", since.Add(-maxCall)))
	for _, container := range []string{prefix + "new", prefix + "kept"} {
		calls := l.calls(t, container, since)
		failed, excused := 0, 0
		for _, c := range calls {
			switch {
			case c.ok && (container == prefix+"new" || c.connects == "0"):
			case container == prefix+"new" && c.timedOut() && slices.ContainsFunc(stalls, c.during):
				excused++
			default:
				if failed++; failed <= 5 {
					out = append(out, fmt.Sprintf("%s: after %.1f s a call failed or had to reconnect (%s connects): %q", container, c.ended.Sub(since).Seconds(), c.connects, c.message))
				}
			}
		}
		t.Logf("%s: %d of %d calls failed in %.1f s, and %d timed out as the machine stood still (%d times)",
			container, failed, len(calls), time.Since(since).Seconds(), excused, len(stalls))
		if len(calls) < int(time.Since(since).Seconds())*rateOf(container)/4 {
			out = append(out, fmt.Sprintf("%s: only %d calls: the client stood still", container, len(calls)))
		}
	}
	return out
}

// maxCall is the longest that a call of new or beside takes, with what the log adds.
const maxCall = 2500 * time.Millisecond

// stall is a time in which a client that calls 25 times a second ended no call, or failed.
type stall struct{ from, to time.Time }

// stallsOf finds them: a machine on which nothing ends for 0.2 s loses packets of a tunnel.
func stallsOf(calls []call) (out []stall) {
	for i, c := range calls[min(1, len(calls)):] {
		if before := calls[i].ended; !c.ok || c.ended.Sub(before) > 200*time.Millisecond {
			out = append(out, stall{before, c.ended})
		}
	}
	return out
}

// during says whether the call was under way in a stall.
func (c call) during(s stall) bool {
	return c.ended.After(s.from) && c.ended.Add(-maxCall).Before(s.to)
}

// timedOut tells it from what was refused, or answered wrongly.
func (c call) timedOut() bool {
	message := strings.ToLower(c.message)
	return !c.ok && (strings.Contains(message, "timed out") || strings.Contains(message, "timeout"))
}

// mustRecover waits until the calls of the last second succeeded, and returns for how long calls had failed.
func (l load) mustRecover(t *testing.T, container string, since time.Time) (failed time.Duration) {
	t.Helper()
	testutil.Eventually(t, 40*time.Second, func() error {
		calls := l.calls(t, container, since)
		last := len(calls) - 1
		for last >= 0 && calls[last].ok {
			last--
		}
		if len(calls)-1-last < rateOf(container) {
			return fmt.Errorf("%s: of %d calls, fewer than the last %d succeeded", container, len(calls), rateOf(container))
		}
		if last >= 0 { // it may be back before a call notices
			failed = calls[last].ended.Sub(since)
		}
		return nil
	})
	return failed
}
