package locality

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"sync"
	"time"

	"strait.io/strait/internal/fabric"
	"strait.io/strait/internal/testutil"
)

// counts is what the backends counted: the time of each connection that they accepted, by cluster.
type counts struct {
	mu  sync.Mutex
	all map[string][]time.Time
}

func newCounts() *counts { return &counts{all: map[string][]time.Time{}} }

func (c *counts) add(cluster string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all[cluster] = append(c.all[cluster], time.Now())
}

// between returns the shares of what was counted in a time, and how many it was.
func (c *counts) between(from, to time.Time) (out shares, total int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	out = shares{}
	for cluster, all := range c.all {
		for _, at := range all {
			if !at.Before(from) && at.Before(to) {
				out[cluster]++
				total++
			}
		}
	}
	for cluster := range out {
		out[cluster] /= float64(max(total, 1))
	}
	return out, total
}

// serve starts the backends of a cluster: as many as it has pods. They end with the test.
func (c *cluster) serve(pods int) {
	c.w.Helper()
	for i := range pods {
		addr := c.pod(byte(firstPod + i))
		c.w.in(c.pods, "ip", "addr", "add", addr.String()+"/32", "dev", "eth0")
		var l net.Listener
		c.w.must(fabric.InsideNamed(c.pods, func() (err error) {
			l, err = net.Listen("tcp", netip.AddrPortFrom(addr, podPort).String())
			return err
		}))
		c.w.Cleanup(func() { l.Close() })
		go c.answer(l)
	}
}

// answer tells every caller the cluster's name, until the listener is closed.
func (c *cluster) answer(l net.Listener) {
	for {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // the client has left
		}
		c.w.counts.add(c.name)
		go func() {
			defer conn.Close()
			_, _ = io.WriteString(conn, c.name) // fails if the client went away, which the client reports
		}()
	}
}

// callerEnv has the order of a process that is a caller.
const callerEnv = "STRAIT_TEST_CALLER"

// order says whom to call, and how often.
type order struct {
	To    netip.AddrPort
	Every time.Duration
}

// answered is the outcome of a call: a new connection, with a timeout and no second try.
type answered struct {
	At  time.Time
	By  string
	Err string `json:",omitempty"`
}

// callTimeout is how long a call may take.
const callTimeout = 3 * time.Second

// beCaller calls until its standard input ends, and prints the outcomes.
func beCaller(text string) error {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	var mu sync.Mutex
	out := json.NewEncoder(os.Stdout)
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(ended)
	}()
	tick := time.NewTicker(o.Every)
	defer tick.Stop()
	var calls sync.WaitGroup
	defer calls.Wait()
	for {
		calls.Go(func() {
			a := call(o.To)
			mu.Lock()
			defer mu.Unlock()
			_ = out.Encode(a) // fails if the test has ended
		})
		select {
		case <-tick.C:
		case <-ended:
			return nil
		}
	}
}

func call(to netip.AddrPort) answered {
	a := answered{At: time.Now()}
	conn, err := net.DialTimeout("tcp", to.String(), callTimeout)
	if err == nil {
		defer conn.Close()
		var text []byte
		_ = conn.SetDeadline(a.At.Add(callTimeout)) // cannot fail before the connection is closed
		text, err = io.ReadAll(conn)
		if a.By = string(text); err == nil && a.By == "" {
			err = errors.New("an empty answer")
		}
	}
	if err != nil {
		a.Err = err.Error()
	}
	return a
}

// load is a process in a pod that calls all the time.
type load struct {
	w    *world
	cmd  *exec.Cmd
	stop func()

	mu   sync.Mutex
	all  []answered
	done chan struct{}
}

// call starts a caller in a pod of the near cluster. It ends with the test, or by stop.
func (w *world) call(every time.Duration) *load {
	w.Helper()
	text, err := json.Marshal(order{w.frontend(), every})
	w.must(err)
	l := &load{w: w, cmd: exec.Command(os.Args[0]), done: make(chan struct{})}
	l.cmd.Env = append(os.Environ(), callerEnv+"="+string(text))
	l.cmd.Stderr = os.Stderr
	in, err := l.cmd.StdinPipe()
	w.must(err)
	out, err := l.cmd.StdoutPipe()
	w.must(err, w.near.begin(w.near.pods, l.cmd))
	go l.collect(out)
	l.stop = sync.OnceFunc(func() {
		in.Close() // it ends when its input does
		<-l.done
		_ = l.cmd.Wait() // what it did is in the outcomes
	})
	w.Cleanup(l.stop)
	return l
}

func (l *load) collect(out io.Reader) {
	defer close(l.done)
	lines := json.NewDecoder(bufio.NewReader(out))
	for {
		var a answered
		if lines.Decode(&a) != nil {
			return
		}
		l.mu.Lock()
		l.all = append(l.all, a)
		l.mu.Unlock()
	}
}

// since are the calls that began at a time or later.
func (l *load) since(t time.Time) (out []answered) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range l.all {
		if !a.At.Before(t) {
			out = append(out, a)
		}
	}
	return out
}

// mustBeWhole stops the caller, and demands that no call failed since a time.
func (l *load) mustBeWhole(since time.Time) {
	l.w.Helper()
	l.stop()
	calls, failed := l.since(since), 0
	for _, a := range calls {
		if a.Err == "" {
			continue
		}
		if failed++; failed <= 5 {
			l.w.Errorf("after %.2f s a call failed: %s", a.At.Sub(since).Seconds(), a.Err)
		}
	}
	l.w.Logf("%d of %d calls failed", failed, len(calls))
	if len(calls) < 100 {
		l.w.Errorf("only %d calls", len(calls))
	}
}

// counted waits until the backends have counted a number of connections, and compares their shares with
// those that are explained: five standard deviations are what chance may add.
func (w *world) counted(n int, want shares) {
	w.Helper()
	from := time.Now()
	var got shares
	total := 0
	testutil.Eventually(w, patience, func() error {
		if got, total = w.counts.between(from, time.Now()); total < n {
			return fmt.Errorf("the backends counted %d connections, want %d", total, n)
		}
		return nil
	})
	w.Logf("%d connections: %s; explained: %s", total, got, want)
	if off := got.farthest(want); off > 5*math.Sqrt(0.25/float64(total)) {
		w.Errorf("the backends counted %s, and strait explains %s", got, want)
	}
}
