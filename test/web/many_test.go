package web

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/client"
	"strait.io/strait/daemon/api/fake"
	"strait.io/strait/daemon/api/server"
	"strait.io/strait/internal/l4"
	"strait.io/strait/internal/testutil"
)

// many is how many services the page must stay quick with.
const many = 10_000

// view is a daemon's, with many services. One in a hundred has no endpoint that is ready.
func view() *fake.View {
	v := fake.Sample()
	v.Status.Time = time.Now()
	v.Services = nil
	for i := range many {
		name := fmt.Sprintf("team-%02d/service-%04d", i%40, i)
		vip := netip.AddrFrom4([4]byte{241, 1, byte(i >> 8), byte(i)})
		f := api.Frontend{Addr: l4.New(vip, 80, l4.TCP), Port: "http", InKernel: true, Tier: "zone"}
		for j := range 3 {
			e := api.Endpoint{Addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, byte(j + 1), byte(i >> 8), byte(i)}), 8080), Cluster: []string{"a", "a", "b"}[j],
				Node: "n1", Pod: fmt.Sprintf("pod-%d", j), Tier: []string{"zone", "cluster", "clusterset"}[j], Ready: true, Reason: "ready, in the nearest tier"}
			switch {
			case i%100 == 7:
				e.Ready, e.Reason = false, "pod is not ready"
			case j < 2:
				e.Weight, e.Share = 1, []float64{0.7, 0.3}[j]
			default:
				e.Reason = "standby: nearer tiers carry everything"
			}
			f.Endpoints = append(f.Endpoints, e)
		}
		v.Services = append(v.Services, api.Service{Name: name, Type: "ClusterSetIP", IPs: []netip.Addr{vip}, Exporters: []string{"a", "b"}, Frontends: []api.Frontend{f}})
	}
	return v
}

// daemon answers from a view at a socket, until the test ends or stop is called.
func daemon(t *testing.T, v *fake.View) (socket string, stop func()) {
	t.Helper()
	dir, err := os.MkdirTemp("", "strait-t-") // t.TempDir can be longer than a socket's path may be
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket = filepath.Join(dir, "strait.sock")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- server.New(server.Config{Socket: socket}, fake.NewSource(v)).Run(ctx) }()
	stopped := false
	stop = func() {
		if cancel(); !stopped {
			stopped = true
			if err := <-done; err != nil {
				t.Errorf("server: %v", err)
			}
		}
	}
	t.Cleanup(stop)
	testutil.Eventually(t, wait, func() error {
		_, err := client.OnSocket(socket).Status(t.Context())
		return err
	})
	return socket, stop
}

// TestMany: of 10,000 services, those that can be seen are in the page; the filter and the order work, by
// keys too; each view can be read; and when the daemon stops, the page says how old it is.
func TestMany(t *testing.T) {
	socket, stop := daemon(t, view())
	address := serve(t, filepath.Dir(socket), "--socket", filepath.Base(socket))
	b := open(t, address)
	b.shows("Needs attention")
	b.readable("the clusterset")
	if focus := b.keys("the clusterset", 6); len(focus) < 4 || !strings.HasPrefix(focus[0], "A Skip to the view") || !strings.HasSuffix(focus[2], "Services") {
		t.Errorf("the order of the focus is %q", focus)
	}

	b.do(chromedp.Click(`//nav//a[text()="Services"]`))
	b.shows("10,000 services")
	if rows := len(b.table("Services")); rows < 10 || rows > 100 {
		t.Errorf("%d rows are in the page", rows)
	}
	if n := value[string](b, `document.querySelector('table').getAttribute('aria-rowcount')`); n != "10001" {
		t.Errorf("aria-rowcount is %s", n)
	}
	b.readable("services")
	b.picture("ui-services")
	b.endOfList()
	b.filters()
	b.onlyWrong()
	// An address that is kept leads to its view.
	b.do(chromedp.Navigate(strings.Split(address, "#")[0] + "#/service/team-07/service-0007"))
	b.shows("pod is not ready")
	b.readable("a service")
	b.do(goTo("#/nowhere"))
	b.shows("This page has no view nowhere")
	stop()
	b.do(goTo("#/"))
	b.shows("stale: what is shown is ")
	b.shows("there is no socket")
}

func (b *tab) endOfList() {
	b.Helper()
	b.do(run(`document.querySelector('.box').scrollTop = 1e9`))
	b.shows("service-9999")
	b.until(`document.querySelectorAll('tbody tr[aria-rowindex="10001"]').length === 1`)
}

// filters types into the filter, which a key leads to. The address has the words.
func (b *tab) filters() {
	b.Helper()
	// The protocol types the character even where the page takes the key.
	b.do(run(`document.querySelector('h1').dispatchEvent(new KeyboardEvent('keydown', { key: '/', bubbles: true }))`))
	b.until(`document.activeElement.id === 'filter'`)
	b.do(chromedp.KeyEvent("0042 zone"))
	b.shows("1 of 10,000 services")
	if rows := b.table("Services"); len(rows) != 1 || rows[0][0] != "team-02/service-0042" || rows[0][5] != "zone 70 % · cluster 30 % (a)" {
		b.Errorf("%q", rows)
	}
	if at := value[string](b, `location.hash`); !strings.Contains(at, "q=0042+zone") {
		b.Errorf("the address has no filter: %s", at)
	}
}

// onlyWrong shows the services that nothing serves, the last first.
func (b *tab) onlyWrong() {
	b.Helper()
	b.do(goTo("#/services?wrong=1"))
	b.shows("100 of 10,000 services")
	b.do(chromedp.Click(`//th/button[starts-with(text(), "SERVICE")]`), chromedp.Click(`//th/button[starts-with(text(), "SERVICE")]`))
	b.until(`document.querySelector('th[aria-sort=descending]') !== null`)
	if first := b.table("Services")[0]; first[0] != "team-27/service-9907" || first[5] != "✗ nowhere" {
		b.Errorf("the first row is %q", first)
	}
}

// TestToken: without the token, or with that of an earlier run, the page shows nothing, and says what to do.
func TestToken(t *testing.T) {
	socket, _ := daemon(t, fake.Sample())
	address := serve(t, filepath.Dir(socket), "--socket", filepath.Base(socket))
	b := open(t, strings.Split(address, "#")[0]+"#token=old")
	b.shows("open the address that strait ui printed")
	b.forgive("401")
	b.do(chromedp.Navigate("about:blank"), chromedp.Navigate(address))
	b.shows("Needs attention")
	if at := value[string](b, `location.href`); strings.Contains(at, "token") {
		t.Errorf("the address still has the token: %s", at)
	}
}

// TestBundle: a support bundle answers in place of a daemon, and says that it is one. What needs a daemon is
// refused with the reason.
func TestBundle(t *testing.T) {
	v := fake.Sample()
	v.History = []api.HistoryItem{{Seq: 1, Time: v.Status.Time, Causes: []api.Cause{{Kind: api.CauseDead, Subject: "node b/n2", Text: "is dead"}},
		Effects: []api.Effect{{Service: "default/serve", From: "clusterset 100 % (b)", To: "node 100 % (a)"}}}}
	v.Flows = []api.Flow{{Client: api.FlowClient{Cluster: "a", Node: "n1", Name: "shop/web-1", Kind: api.ClientPod}, Service: "default/serve", Port: "http",
		Frontend: v.Services[0].Frontends[0].Addr, Backend: api.FlowBackend{Addr: netip.MustParseAddrPort("10.0.0.1:80"), Cluster: "a", Node: "n1"}, FlowCounts: api.FlowCounts{Open: 3}}}
	socket, stop := daemon(t, v)
	file := filepath.Join(filepath.Dir(socket), "bundle.tar.gz")
	// The fake daemon has no policies, so the bundle lacks them, and the exit code says so.
	out, err := exec.Command(strait(t), "support", "bundle", file, "--socket", socket).CombinedOutput()
	if _, missing := os.Stat(file); missing != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	stop()
	b := open(t, serve(t, "", "--file", file))
	b.shows("from a support bundle, " + file)
	b.shows("Needs attention")
	b.do(goTo("#/services"))
	b.shows("2 services")
	b.do(goTo("#/service/default/serve?if=cluster+b+down"))
	b.shows("kernel map agrees")
	b.until(`[...document.querySelectorAll('[role=alert]')].some(a => a.innerText.includes('bundle'))`)
	// Who called when it was made; one count has no rates.
	b.shows("3 open · – new/s")
	if rows := b.table("Clients and their backends"); len(rows) != 1 || rows[0][0] != "shop/web-1" {
		t.Errorf("the clients are %q", rows)
	}
	// What had changed; it cannot be planned again.
	b.do(goTo("#/timeline?since=all"))
	b.shows("node b/n2 is dead")
	if links := value[[]string](b, `[...document.querySelectorAll('table a')].map(a => a.innerText)`); len(links) != 1 || links[0] != "default/serve" {
		t.Errorf("the timeline links to %q", links)
	}
	b.readable("the timeline of a bundle")
	b.do(goTo("#/service/default/serve?at=2026-11-20T14:00:00Z"))
	b.until(`[...document.querySelectorAll('[role=alert]')].some(a => a.innerText.includes('bundle'))`)
}
