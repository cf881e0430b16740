// Package web runs strait ui as a user would, and looks at its page in a real Chromium: on the
// demo, and on a daemon with 10,000 services that does not exist otherwise. It reads the site of
// make site in the same way.
//
// Inputs are bin/, built by make, what make site builds, and Chromium; it must not know how the
// pages are made.
package web

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"strait.io/strait/internal/testutil"
)

var update = flag.Bool("update", false, "rewrite the pictures in docs/images")

// wait is how long anything may take on a busy machine.
const wait = 60 * time.Second

// strait finds bin/strait of this checkout.
func strait(t *testing.T) string {
	t.Helper()
	program, err := filepath.Abs("../../bin/strait")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(program); err != nil {
		testutil.Missing(t, "needs bin/strait: run `make web`, which builds it")
	}
	return program
}

// serve runs strait ui in a folder until the test ends, and returns the address that it prints. At
// Ctrl-C, it must end well.
func serve(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command(strait(t), append([]string{"ui"}, args...)...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cmd.Process.Signal(syscall.SIGINT); err != nil && t.Failed() {
			return
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("strait ui: %v\n%s", err, &stderr)
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("strait ui prints no address: %v\n%s", err, &stderr)
	}
	return strings.TrimSpace(line)
}

// action is a step in the browser.
type action = chromedp.Action[chromedp.Void]

// tab is a page in Chromium. Whatever its console says, an error of its script, or something that its
// policy forbids, fails the test.
type tab struct {
	*testing.T
	ctx  context.Context
	mu   sync.Mutex
	said []string
}

// open starts Chromium with a page.
func open(t *testing.T, address string) *tab {
	t.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil {
		testutil.Missing(t, "needs Chromium: run `make web`, which installs it on Debian")
	}
	// Without these flags, Chromium looks for its maker's hosts.
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.UserDataDir(t.TempDir()), chromedp.NoSandbox,
		chromedp.DisableGPU, chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true),
		chromedp.Flag("disable-background-networking", true))
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, end := chromedp.NewContext(ctx)
	t.Cleanup(end)
	b := &tab{T: t, ctx: ctx}
	messages := chromedp.Console(ctx) // starts the browser, whose life is that of ctx
	go func() {
		for m, err := range messages {
			if err == nil {
				b.mu.Lock()
				b.said = append(b.said, m.String())
				b.mu.Unlock()
			}
		}
	}()
	t.Cleanup(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, text := range b.said {
			t.Errorf("the browser's console: %s", text)
		}
	})
	b.do(b.size(1280, 900), b.colours("light"), chromedp.Navigate(address))
	return b
}

// forgive forgets what the console said, which must have what the test expects.
func (b *tab) forgive(want string) {
	b.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, text := range b.said {
		if !strings.Contains(text, want) {
			b.Errorf("the browser's console: %s", text)
		}
	}
	b.said = nil
}

func (b *tab) do(actions ...action) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, wait)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		b.Fatalf("%v\nthe page has:\n%s", err, b.text())
	}
}

// text is what the page shows.
func (b *tab) text() string {
	ctx, cancel := context.WithTimeout(b.ctx, 5*time.Second)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](`document.body.innerText`))
	if err != nil {
		return err.Error()
	}
	return text
}

// value evaluates an expression in the page.
func value[T any](b *tab, expression string) T {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, wait)
	defer cancel()
	out, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.Fatalf("%s: %v\nthe page has:\n%s", expression, err, b.text())
	}
	return out
}

// run evaluates what has no value.
func run(expression string) action { return chromedp.Evaluate[chromedp.Void](expression) }

// goTo goes to a view.
func goTo(hash string) action { return run(fmt.Sprintf("location.hash = %q", hash)) }

// until waits until an expression is true, and returns how long that took.
func (b *tab) until(expression string) time.Duration {
	b.Helper()
	began := time.Now()
	testutil.Eventually(b, wait, func() error {
		if !value[bool](b, expression) {
			return fmt.Errorf("not so in the page: %s\nit has:\n%s", expression, b.text())
		}
		return nil
	})
	return time.Since(began)
}

// shows waits until the page has a text.
func (b *tab) shows(text string) time.Duration {
	b.Helper()
	quoted, err := json.Marshal(text)
	if err != nil {
		b.Fatal(err)
	}
	return b.until(fmt.Sprintf("document.body.innerText.includes(%s)", quoted))
}

func (b *tab) size(width, height int64) action {
	return call(emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height, DeviceScaleFactor: 1, Mobile: width < 600})
}

// colours chooses between light and dark.
func (b *tab) colours(scheme string) action {
	return call(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}}})
}

// call is an action that sends a command of Chromium's protocol.
func call[P, R any](command cdp.Command[P, R], params P) action {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, command, params)
		return err
	})
}

// picture takes a picture of the page for docs, if the flag -update is set.
func (b *tab) picture(name string) {
	b.Helper()
	if !*update {
		return
	}
	b.do(chromedp.MouseEvent("mouseMoved", 1, 1)) // away from rows
	png, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err == nil {
		png, err = small(png)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join("../../docs/images", name+".png"), png, 0o644)
	}
	if err != nil {
		b.Fatal(err)
	}
}

// table returns the cells of a table of the page, by its label.
func (b *tab) table(label string) (rows [][]string) {
	b.Helper()
	return value[[][]string](b, fmt.Sprintf(`[...document.querySelectorAll('table[aria-label=%q] tbody tr:not(.space)')].map(tr => [...tr.cells].map(td => {
		const copy = td.cloneNode(true);
		copy.querySelectorAll('.spoken').forEach(s => s.remove());
		return copy.textContent;
	}))`, label))
}
