package web

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"strait.io/strait/daemon/api"
	"strait.io/strait/internal/testutil"
)

// within is how long the page may take to show what the CLI shows already. It asks every two seconds; this
// catches what is broken, not what is busy.
const within = 10 * time.Second

// world is a demo that is up, in the folder .demo of dir. The socket's path is relative to dir.
type world struct {
	*testing.T
	dir, socket string
}

func demo(t *testing.T) world {
	t.Helper()
	testutil.NeedRoot(t)
	testutil.NeedTun(t)
	strait(t)
	top, err := os.MkdirTemp("", "strait-t-") // t.TempDir can be longer than a socket's path may be
	if err != nil {
		t.Fatal(err)
	}
	w := world{t, top, ".demo/us-east-1/run/strait.sock"}
	down := func() {
		cmd := exec.Command(strait(t), "demo", "down")
		cmd.Dir = top
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("demo down: %v\n%s", err, out)
		}
		os.RemoveAll(top)
	}
	forget := testutil.AtInterrupt(down)
	t.Cleanup(func() {
		forget()
		down()
	})
	if out := w.strait("demo", "up"); !strings.Contains(out, "ui --socket") {
		t.Errorf("the demo does not say how to open the page:\n%s", out)
	}
	return w
}

// strait runs a command to its end, and returns its output.
func (w world) strait(args ...string) string {
	w.Helper()
	cmd := exec.Command(strait(w.T), args...)
	cmd.Dir = w.dir
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		w.Fatalf("strait %s: %v\n%s%s", strings.Join(args, " "), err, out, &stderr)
	}
	return string(out)
}

// ask returns what a query answers as JSON.
func ask[T any](w world, args ...string) (answer T) {
	w.Helper()
	if err := json.Unmarshal([]byte(w.strait(append(args, "--socket", w.socket, "-o", "json")...)), &answer); err != nil {
		w.Fatal(err)
	}
	return answer
}

// TestDemo: each view of the demo has what the CLI shows.
func TestDemo(t *testing.T) {
	w := demo(t)
	address := serve(t, w.dir, "--socket", w.socket)
	b := open(t, address)

	b.shows("seen from 2 nodes of 1 cluster")
	if rows := b.table("Clusters"); len(rows) != 3 || rows[1][0] != "us-east" {
		t.Errorf("the clusters are %q", rows)
	}
	b.readable("the clusterset")
	b.do(chromedp.Click(`//nav//a[text()="Services"]`))
	b.shows("2 services")
	if rows := b.table("Services"); len(rows) != 2 || rows[1][0] != "default/serve" || rows[1][5] != "node 100 % (us-east)" {
		t.Errorf("the services are %q", rows)
	}
	b.do(chromedp.Click(`//a[text()="default/serve"]`))
	b.shows("kernel map agrees")
	w.endpoints(b)
	w.flows(b)
	b.readable("a service")
	w.whatIf(b)
	b.do(chromedp.Click(`//nav//a[text()="Nodes"]`))
	b.shows("6 nodes")
	b.readable("nodes")
	if rows := b.table("Tunnels from each node"); len(rows) != 2 || len(rows[0]) != 5 {
		t.Errorf("the tunnels are %q", rows)
	}
	w.cut(b)
	w.timeline(b)
}

// endpoints wants the table of a service to have what explain has.
func (w world) endpoints(b *tab) {
	w.Helper()
	f := ask[api.Explanation](w, "explain", "default/serve").Service.Frontends[0]
	want := map[string]string{}
	for _, e := range f.Endpoints {
		want[e.Addr.String()] = fmt.Sprintf("%s, %s, %s", api.Percent(e.Share), e.Where(), e.Reason)
	}
	got := map[string]string{}
	for _, row := range b.table("Endpoints of " + f.Addr.String()) {
		got[row[3]] = fmt.Sprintf("%s, %s, %s", row[2], row[4], row[7])
	}
	if !reflect.DeepEqual(got, want) {
		w.Errorf("the endpoints are\n%q, and explain has\n%q", got, want)
	}
}

// whatIf tries a change with the switches, and wants what explain says of it: now and then, and the line
// that the page offers to copy.
func (w world) whatIf(b *tab) {
	w.Helper()
	b.do(chromedp.SetValue("#whatif", "dead"), dispatch("#whatif"), chromedp.WaitVisible("#which"),
		chromedp.SetValue("#which", "us-east/us-east-1"), dispatch("#which"))
	const change = "node us-east/us-east-1 dead"
	b.shows("if " + change)
	then := ask[api.WhatIf](w, "explain", "default/serve", "--what-if", change)
	if len(then.Moved) == 0 {
		w.Fatalf("nothing would move: %+v", then)
	}
	for _, m := range then.Moved {
		var want, got [][]string
		for _, e := range m.Endpoints {
			want = append(want, []string{e.Addr.String(), api.Percent(e.Before), api.Percent(e.After)})
		}
		for _, row := range b.table("Shares of " + m.Addr.String() + " now and then") {
			got = append(got, []string{row[0], row[2], row[3]})
		}
		if !reflect.DeepEqual(got, want) {
			w.Errorf("if %s, the shares of %s are\n%q, and explain has\n%q", change, m.Addr, got, want)
		}
	}
	b.readable("what if")
	b.do(run(`document.getElementById('what-if').scrollIntoView()`))
	b.picture("ui-what-if")
	line := value[string](b, `document.querySelector('.after .line code').innerText`)
	copied := exec.Command("sh", "-c", filepath.Dir(strait(w.T))+"/"+line)
	copied.Dir = w.dir
	out, err := copied.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "if "+change) {
		w.Errorf("%s: %v\n%s", line, err, out)
	}
	b.do(goTo("#/service/default/serve?if=drain+nowhere"))
	b.shows("nowhere")
	b.until(`document.querySelector('[role=alert]') !== null`)
}

// cut drops what the tunnels of a node carry. The page shows it soon after the CLI does.
func (w world) cut(b *tab) {
	w.Helper()
	const node = "us-west-1"
	for _, rule := range []string{"add table inet cut", "add chain inet cut in { type filter hook input priority -300; }", "add rule inet cut in udp dport 51820 drop"} {
		w.strait(append([]string{"demo", "exec", node, "--", "nft"}, strings.Fields(rule)...)...)
	}
	testutil.Eventually(w, wait, func() error {
		for _, n := range ask[api.NodeList](w, "nodes").Items {
			if n.Name == node && n.Tunnel != nil && n.Tunnel.Down() != "" {
				return nil
			}
		}
		return fmt.Errorf("the tunnel to %s carries packets", node)
	})
	took := b.until(`[...document.querySelectorAll('table[aria-label=Nodes] tbody tr')].some(tr => tr.textContent.includes('us-west/us-west-1') && tr.textContent.includes('✗'))`)
	w.Logf("the page shows the cut tunnel %v after the CLI", took.Round(10*time.Millisecond))
	if took > within {
		w.Errorf("the page shows it %v later than the CLI, at most %v are allowed", took, within)
	}
	b.do(chromedp.Click(`//nav//a[text()="Clusterset"]`))
	b.until(`[...document.querySelectorAll('.matrix td')].some(td => td.textContent.includes('✗'))`)
	b.readable("the clusterset with a cut tunnel")
	b.picture("ui-clusterset")
	b.do(b.size(360, 740), b.colours("dark"))
	b.picture("ui-phone")
}

// dispatch tells the page that a field was changed.
func dispatch(field string) action {
	return run(fmt.Sprintf(`document.querySelector(%q).dispatchEvent(new Event('change', { bubbles: true }))`, field))
}
