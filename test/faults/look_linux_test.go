package faults

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"strait.io/strait/internal/problem"
)

// look is all that shows the problems of a daemon to people and to their programs.
type look struct {
	life *process
	// address and token are those of strait ui.
	address, token string
	// socket is true if metrics are read on the socket, because their port is taken.
	socket bool
	// fine are the warnings of this machine's kernel, which are no faults.
	fine map[string]bool
}

// checkAnswer is what strait check -o json prints, and pageAnswer what the page of strait ui gets, and
// renders in its order: test/web looks at that in Chromium.
type (
	checkAnswer struct {
		Items []struct {
			Title, State string
			Findings     []struct{ Code, Message string }
		}
	}
	pageAnswer struct {
		View struct {
			Attention []struct{ Code, Check, Message string }
		}
		Error string
	}
)

// look runs strait ui on a machine's daemon until the test ends.
func (w *ill) look(m *machine) *look {
	w.Helper()
	l := &look{life: w.lives[m], fine: map[string]bool{}}
	cmd := l.command("ui")
	out, err := cmd.StdoutPipe()
	must(w.T, errors.Join(err, m.ns.Do(cmd.Start)))
	w.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGINT) // Wait shows whether it was there
		if err := cmd.Wait(); err != nil {
			w.Errorf("strait ui of machine %d: %v", m.number, err)
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	must(w.T, err)
	var found bool
	if l.address, l.token, found = strings.Cut(strings.TrimSpace(line), "/#token="); !found {
		w.Fatalf("strait ui prints %q", line)
	}
	checks, _, err := l.checks()
	must(w.T, err)
	for _, c := range checks.Items {
		if c.State != "ok" {
			l.fine[c.Title] = true
		}
	}
	return l
}

// command is one of strait's, at the machine's daemon.
func (l *look) command(args ...string) *exec.Cmd {
	dir, _ := programs() // built, or the test had ended
	return exec.Command(filepath.Join(dir, "strait"), append(args, "--socket", l.life.m.path("run/strait.sock"))...)
}

// first wants the first problem of the status to have a code, and returns it.
func (l *look) first(code problem.Code) (problem.Problem, error) {
	s, err := l.life.status()
	if err != nil {
		return problem.Problem{}, err
	}
	if len(s.Problems) == 0 || s.Problems[0].Code != code {
		return problem.Problem{}, fmt.Errorf("want %s first, and its problems are %v", code, s.Problems)
	}
	return s.Problems[0], nil
}

var anyCode = regexp.MustCompile(`STR\d{4}`)

// text wants the code to be the first in the text of strait status.
func (l *look) text(code problem.Code) error {
	out, _ := l.command("status").Output() // it fails if a problem is an error
	if got := anyCode.FindString(string(out)); got != string(code) {
		return fmt.Errorf("want %s first:\n%s", code, out)
	}
	return nil
}

// checks runs strait check. Failed is true if a check failed.
func (l *look) checks() (answer checkAnswer, failed bool, err error) {
	out, err := l.command("check", "-o", "json").Output()
	if exit, is := errors.AsType[*exec.ExitError](err); is && exit.ExitCode() == 1 {
		failed, err = true, nil
	}
	if err == nil {
		err = json.Unmarshal(out, &answer)
	}
	return answer, failed, err
}

// check wants the check with a title to find the code.
func (l *look) check(code problem.Code, title string) error {
	answer, _, err := l.checks()
	if err != nil {
		return err
	}
	for _, c := range answer.Items {
		for _, f := range c.Findings {
			if c.Title == title && c.State != "ok" && f.Code == string(code) {
				return nil
			}
		}
	}
	return fmt.Errorf("%q does not find %s: %+v", title, code, answer.Items)
}

// scrape returns the metrics of problems.
func (l *look) scrape() (lines []string, err error) {
	client := l.life.m.http()
	if l.socket {
		client.Transport.(*http.Transport).DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", l.life.m.path("run/strait.sock"))
		}
	}
	r, err := client.Get("http://" + l.life.m.config["metrics"].(tree)["listen"].(string) + "/metrics")
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err == nil && r.StatusCode != http.StatusOK {
		err = fmt.Errorf("metrics: %s", r.Status)
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "strait_problems_by_code{") {
			lines = append(lines, line)
		}
	}
	return lines, err
}

// metric wants a metric to count the code.
func (l *look) metric(code problem.Code) error {
	lines, err := l.scrape()
	if err != nil {
		return err
	}
	for _, line := range lines {
		if strings.Contains(line, fmt.Sprintf("code=%q", code)) {
			return nil // a code that none has is absent
		}
	}
	return fmt.Errorf("no strait_problems_by_code with %s: %q", code, lines)
}

// attention returns what the page lists as needing attention.
func (l *look) attention() (answer pageAnswer, err error) {
	r, err := http.NewRequest(http.MethodGet, l.address+"/api/clusterset", nil)
	if err != nil {
		return answer, err
	}
	r.Header.Set("X-Strait-Token", l.token)
	got, err := l.life.m.http().Do(r)
	if err != nil {
		return answer, err
	}
	defer got.Body.Close()
	if err := json.NewDecoder(got.Body).Decode(&answer); err != nil {
		return answer, err
	}
	if answer.Error != "" {
		err = errors.New(answer.Error)
	}
	return answer, err
}

// page wants the code to be the first that needs attention.
func (l *look) page(code problem.Code) error {
	answer, err := l.attention()
	if all := answer.View.Attention; err == nil && (len(all) == 0 || all[0].Code != string(code)) {
		err = fmt.Errorf("want %s first: %+v", code, all)
	}
	return err
}

// well wants nothing to be wrong in any place.
func (l *look) well() error {
	answer, failed, err := l.checks()
	if err != nil {
		return err
	}
	for _, c := range answer.Items {
		if failed || c.State != "ok" && !l.fine[c.Title] {
			return fmt.Errorf("strait check: failed %t, %q is %s: %v", failed, c.Title, c.State, c.Findings)
		}
	}
	lines, err := l.scrape()
	if err == nil && len(lines) > 0 {
		err = fmt.Errorf("metrics: %q", lines)
	}
	if err != nil {
		return err
	}
	page, err := l.attention()
	if err != nil {
		return err
	}
	for _, a := range page.View.Attention {
		if a.Code != "" || !l.fine[a.Check] {
			return fmt.Errorf("the page has %+v", a)
		}
	}
	if out, err := l.command("status").CombinedOutput(); err != nil {
		return fmt.Errorf("strait status: %w\n%s", err, out)
	}
	return nil
}

// read returns a file of the machine.
func (m *machine) read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(m.path(name))
	must(t, err)
	return string(text)
}
