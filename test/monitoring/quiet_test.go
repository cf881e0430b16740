package monitoring

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"strait.io/strait/daemon/api/client"
	"strait.io/strait/demo/lab"
	"strait.io/strait/internal/testutil"
)

// quietEnv is for how many minutes TestQuiet goes on; make quiet sets it.
const quietEnv = "STRAIT_QUIET_MINUTES"

// quietAfter is how long an alert's condition must hold in TestQuiet: longer than a restart of a daemon, and far
// shorter than with the chart.
const quietAfter = 10 * time.Second

// TestQuiet: while clients call, pods come and go, Services too, and daemons are restarted as in an upgrade, no
// daemon reports any problem, and no alert fires.
func TestQuiet(t *testing.T) {
	lasts := 20 * time.Second
	if text := os.Getenv(quietEnv); text != "" {
		minutes, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatalf("%s: %v", quietEnv, err)
		}
		lasts = time.Duration(minutes * float64(time.Minute))
	}
	w := demo(t)
	w.call()
	s := w.scrape(quietAfter)
	testutil.Eventually(t, wait, func() error { return s.has(len(w.daemons()), "up == 1") })
	l, err := lab.Open(filepath.Join(w.dir, ".demo"), nil)
	if err != nil {
		t.Fatal(err)
	}
	c := &churn{server: s, lab: l, noise: map[string]time.Time{}}
	testutil.Eventually(t, wait, c.isSilent)
	end := c.watch()
	turns := 0
	for began := time.Now(); time.Since(began) < lasts; turns++ {
		c.turn(turns)
	}
	end()
	t.Logf("quiet for %s: %d turns of churn, %d daemons restarted, %d looks at problems", lasts, turns, c.restarted, c.looks)
	if turns < 3 || c.restarted == 0 || c.looks < 5 {
		t.Errorf("too little happened to mean anything")
	}
}

// churn is what goes on in the demo, and what is said about it.
type churn struct {
	server
	lab              *lab.Lab
	restarted, looks int
	// noise are the problems that are reported and the alerts that fire, and since when.
	noise map[string]time.Time
}

// turn restarts one daemon, takes a pod away from and gives it back to its Service, and makes and removes a Service.
func (c *churn) turn(n int) {
	c.Helper()
	all := c.daemons()
	d := all[n%len(all)]
	serve := filepath.Join(c.dir, ".demo", d.Cluster, "manifests", "serve.yaml")
	c.edit(serve, "ready: true", "ready: false", 1)
	time.Sleep(time.Second)
	c.restart(c.lab, d.Node, c.straitd())
	c.restarted++
	c.edit(serve, "ready: false", "ready: true", 1)
	more := filepath.Join(filepath.Dir(serve), "more.yaml")
	text, err := os.ReadFile(serve)
	if err != nil {
		c.Fatal(err)
	}
	c.replace(more, strings.NewReplacer("name: serve", "name: more", "service-name: serve", "service-name: more").Replace(string(text)))
	time.Sleep(2 * time.Second)
	if err := os.Remove(more); err != nil {
		c.Fatal(err)
	}
	time.Sleep(time.Second)
}

// edit replaces the first occurrences of a text in a file.
func (c *churn) edit(file, from, to string, times int) {
	c.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		c.Fatal(err)
	}
	changed := strings.Replace(string(text), from, to, times)
	if changed == string(text) {
		c.Fatalf("%s has no %q", file, from)
	}
	c.replace(file, changed)
}

// replace writes a file as a careful operator does.
func (c *churn) replace(file, text string) {
	c.Helper()
	if err := testutil.Replace(file, text); err != nil {
		c.Fatal(err)
	}
}

// watch looks at all problems and alerts each second, beside the churn, until it is ended.
func (c *churn) watch() (end func()) {
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for tick := time.NewTicker(time.Second); ; {
			select {
			case <-over:
				return
			case <-tick.C:
				c.look()
			}
		}
	}()
	end = sync.OnceFunc(func() {
		close(over)
		<-done
	})
	c.Cleanup(end)
	return end
}

// look takes what is wrong now. What is new fails the test; when it ends is logged.
func (c *churn) look() {
	now := c.wrong()
	c.looks++
	for _, what := range now {
		if _, known := c.noise[what]; !known {
			c.noise[what] = time.Now()
			c.Errorf("%s: %s", time.Now().Format(time.TimeOnly), what)
		}
	}
	for what, since := range c.noise {
		if !slices.Contains(now, what) {
			c.Logf("ended after %s: %s", time.Since(since).Round(time.Second/10), what)
			delete(c.noise, what)
		}
	}
}

// wrong lists the problems of the daemons that answer, and the alerts that fire.
func (c *churn) wrong() (out []string) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	for _, d := range c.daemons() {
		s, err := client.OnSocket(socket(c.lab, d.Node)).Status(ctx)
		if err != nil {
			continue // it is being restarted, which has a limit
		}
		for _, p := range s.Problems {
			out = append(out, fmt.Sprintf("problem on %s: %s %s", d.Node, p.Code, p))
		}
	}
	alerts, err := c.firing()
	if err != nil && c.Context().Err() == nil {
		out = append(out, "Prometheus: "+err.Error())
	}
	for _, a := range alerts {
		out = append(out, fmt.Sprintf("alert %s: %s", a.Labels["alertname"], a.Annotations["summary"]))
	}
	return out
}

// isSilent wants nothing to be wrong.
func (c *churn) isSilent() error {
	if wrong := c.wrong(); len(wrong) > 0 {
		return fmt.Errorf("%q", wrong)
	}
	return nil
}
