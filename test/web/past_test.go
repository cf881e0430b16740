package web

import (
	"bufio"
	"cmp"
	"fmt"
	"net/url"
	"os/exec"
	"reflect"
	"slices"
	"strings"

	"github.com/chromedp/chromedp"

	"strait.io/strait/daemon/api"
	"strait.io/strait/internal/testutil"
)

// hold keeps a connection from a pod to a frontend open until release is called, or the test ends.
func (w world) hold(pod string, f api.Frontend) (release func()) {
	w.Helper()
	script := fmt.Sprintf(`exec 3<>/dev/tcp/%s/%d; printf 'GET / HTTP/1.1\r\nHost: serve\r\n\r\n' >&3; head -n 1 <&3; exec sleep 600`, f.Addr.IP, f.Addr.Port)
	cmd := exec.Command(strait(w.T), "demo", "exec", pod, "--", "bash", "-c", script)
	cmd.Dir = w.dir
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		w.Fatal(err)
	}
	released := false
	release = func() {
		if !released {
			released = true
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	}
	w.Cleanup(release)
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || !strings.Contains(line, "200") {
		w.Fatalf("%s has no connection to %s: %q %v", pod, f.Addr, line, err)
	}
	return release
}

// flows wants the row of a connection that is held, as strait flows has it, and wants it to go when
// that ends.
func (w world) flows(b *tab) {
	w.Helper()
	const label = "Clients and their backends"
	release := w.hold("us-east-1/client", ask[api.Explanation](w, "explain", "default/serve").Service.Frontends[0])
	took := b.until(fmt.Sprintf(`document.querySelectorAll('table[aria-label=%q] tbody tr').length === 1`, label))
	list := ask[api.FlowList](w, "flows", "default/serve", "--node", api.EveryNode)
	if len(list.Items) != 1 {
		w.Fatalf("the flows are %+v", list.Items)
	}
	f := list.Items[0]
	want := []string{f.Client.Cluster + "/" + f.Client.Node, f.Service + ":" + f.Port, cmp.Or(f.Backend.Pod, f.Backend.Addr.String()), f.Backend.Where(), "1"}
	got := b.table(label)[0]
	if !slices.Equal(got[1:1+len(want)], want) || got[6] == api.None || got[7] == api.None {
		w.Errorf("the row is %q, and strait flows has %q", got, want)
	}
	// Long names of clients are shortened.
	if text := w.strait("flows", "default/serve", "--node", api.EveryNode, "--socket", w.socket); !strings.Contains(text, got[0]) {
		w.Errorf("the client is %q, and strait flows has\n%s", got[0], text)
	}
	b.shows("1 open · ")
	if rows := b.table("Connections by cluster"); len(rows) == 0 || rows[0][0] != f.Backend.Cluster || rows[0][1] != "1" {
		w.Errorf("by cluster: %q", rows)
	}
	w.Logf("the page shows a new connection after %v, to the backend %s", took, want[2])
	b.readable("a service with a connection")
	release()
	b.shows("no connection is open now")
}

// timeline wants the cut tunnel in the timeline, as the CLI has it, and goes from a service that a
// cause changed to its view of then.
func (w world) timeline(b *tab) {
	w.Helper()
	b.do(b.size(1280, 900), b.colours("light"), chromedp.Click(`//nav//a[text()="Timeline"]`))
	testutil.Eventually(w, wait, func() error {
		events := ask[struct{ Events []api.Event }](w, "timeline", "--node", api.EveryNode).Events
		const tunnel = "tunnel to us-west/us-west-1"
		i := slices.IndexFunc(events, func(e api.Event) bool {
			return e.Subject == tunnel || slices.ContainsFunc(e.Also, func(c api.Cause) bool { return c.Subject == tunnel })
		})
		if i < 0 {
			return fmt.Errorf("strait timeline has nothing of the cut tunnel: %+v", events)
		}
		want := events[i].Subject + " " + strings.Join(events[i].Texts, ", ")
		rows := b.table("What changed")
		if !slices.ContainsFunc(rows, func(row []string) bool { return slices.Contains(row, want) }) {
			return fmt.Errorf("the page has not %q:\n%q", want, rows)
		}
		return nil
	})
	b.readable("the timeline")
	b.do(goTo("#/timeline?since=all&name=default%2Fserve"))
	const then = `[...document.querySelectorAll('table[aria-label="What changed"] a[aria-label^="then: default/serve"]')]`
	b.until(then + `.length > 0`)
	b.do(run(then + `[0].click()`))
	b.shows("This is the past")
	b.shows("planned again from what was noted")
	w.past(b)
}

// past wants the view of a service at a moment to be what explain has of then, and the line to copy
// to show the same.
func (w world) past(b *tab) {
	w.Helper()
	_, query, _ := strings.Cut(value[string](b, `location.hash`), "?")
	values, err := url.ParseQuery(query)
	if err != nil || values.Get("at") == "" {
		w.Fatalf("the address has no moment: %q", query)
	}
	b.until(`document.querySelector('table[aria-label^="Endpoints of "]') !== null`)
	e := ask[api.Explanation](w, "explain", "default/serve", "--at", values.Get("at"))
	if e.SeenFrom.Past == nil || len(e.Service.Frontends) == 0 {
		w.Fatalf("explain --at: %+v", e)
	}
	f := e.Service.Frontends[0]
	want, got := map[string]string{}, map[string]string{}
	for _, x := range f.Endpoints {
		want[x.Addr.String()] = fmt.Sprintf("%s, %s, %s", api.Percent(x.Share), x.Where(), x.Reason)
	}
	for _, row := range b.table("Endpoints of " + f.Addr.String()) {
		got[row[3]] = fmt.Sprintf("%s, %s, %s", row[2], row[4], strings.TrimLeft(row[7], api.Bad+api.Warn+" "))
	}
	if !reflect.DeepEqual(got, want) {
		w.Errorf("at %s, the endpoints are\n%q, and explain has\n%q", values.Get("at"), got, want)
	}
	if live := value[int](b, `document.querySelectorAll('#live-connections, #what-if').length`); live != 0 {
		w.Error("a view of the past shows what is of now")
	}
	b.readable("a service in the past")
	line := value[string](b, `document.querySelector('.line code').innerText`)
	copied := exec.Command("sh", "-c", strings.TrimSuffix(strait(w.T), "strait")+line)
	copied.Dir = w.dir
	if out, err := copied.CombinedOutput(); err != nil || !strings.Contains(string(out), "as noted at") {
		w.Errorf("%s: %v\n%s", line, err, out)
	}
	b.do(chromedp.Click(`//a[text()="Show it as it is now"]`))
	b.shows("kernel map")
	b.until(`!location.hash.includes('at=')`)
}
