package kube

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"strait.io/strait/daemon/api"
	"strait.io/strait/internal/problem"
	"strait.io/strait/internal/testutil"
)

// shown is what a face shows of what is wrong.
type shown struct {
	// codes are those of all problems, the first cause first, without repetition.
	codes []problem.Code
	// check is the title of the check that fails, and try what to do about the first; empty if the
	// face has no such thing.
	check, try string
}

func (s *shown) add(code problem.Code) {
	if code != "" && !slices.Contains(s.codes, code) {
		s.codes = append(s.codes, code)
	}
}

// face is one way to see what is wrong in both clusters.
type face struct {
	name string
	look func(*testing.T) (shown, error)
}

// faces are all of them.
type faces struct {
	*ops
	page, token string // strait ui's address
}

// startFaces serves the page until the test ends.
func (o *ops) startFaces(t *testing.T) faces {
	t.Helper()
	cmd := exec.Command(o.strait.CLI, "ui", "--context", "c1", "--context", "c2", "--kubeconfig", o.Kubeconfig(), "-o", "json")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() {
		if err := errors.Join(cmd.Process.Signal(syscall.SIGINT), cmd.Wait()); err != nil {
			t.Errorf("strait ui: %v", err)
		}
	})
	var at struct{ Address string }
	must(t, json.NewDecoder(bufio.NewReader(out)).Decode(&at))
	page, token, found := strings.Cut(at.Address, "#token=")
	if !found {
		t.Fatalf("strait ui is at %q, which has no token", at.Address)
	}
	return faces{o, page, token}
}

func (f faces) all() []face {
	return []face{{"strait check", f.check}, {"strait status", f.status}, {"/metrics", f.metrics}, {"the page", f.ui}}
}

// mustBeWell waits until no face shows anything.
func (f faces) mustBeWell(t *testing.T) {
	t.Helper()
	for _, face := range f.all() {
		testutil.Eventually(t, within, func() error {
			got, err := face.look(t)
			if err == nil && (len(got.codes) > 0 || got.check != "") {
				err = fmt.Errorf("%s shows %q %q", face.name, got.codes, got.check)
			}
			return err
		})
	}
}

// data runs a query of both clusters, whose exit code may say that something is wrong.
func (f faces) data(t *testing.T, into any, args ...string) error {
	cmd := exec.CommandContext(t.Context(), f.strait.CLI, append(args, "--context", "c1", "--context", "c2", "--kubeconfig", f.Kubeconfig(), "-o", "json")...)
	out, err := cmd.Output()
	if e := (*exec.ExitError)(nil); errors.As(err, &e) && len(out) > 0 {
		err = nil
	}
	if err == nil {
		err = json.Unmarshal(out, into)
	}
	if err != nil {
		return fmt.Errorf("strait %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

func (f faces) check(t *testing.T) (s shown, err error) {
	var list struct {
		Items []struct {
			Title, State string
			Findings     []struct {
				Code         problem.Code
				Message, Try string
			}
		}
	}
	err = f.data(t, &list, "check")
	for _, c := range list.Items {
		if c.State == "ok" {
			continue
		}
		if s.check != "" {
			err = errors.Join(err, fmt.Errorf("two checks fail: %s, %s: %v", s.check, c.Title, c.Findings))
		}
		s.check = c.Title
		for _, x := range c.Findings {
			if s.add(x.Code); s.try == "" {
				s.try = x.Try
			}
		}
	}
	return s, err
}

func (f faces) status(t *testing.T) (s shown, err error) {
	var list struct {
		Items []struct {
			Cluster, Node string
			Status        *api.Status
		}
	}
	if err := f.data(t, &list, "status"); err != nil {
		return s, err
	}
	for _, n := range list.Items {
		if n.Status == nil {
			return s, fmt.Errorf("%s/%s does not answer", n.Cluster, n.Node)
		}
		for _, p := range n.Status.Problems {
			s.add(p.Code)
		}
	}
	if len(list.Items) != 4 {
		return s, fmt.Errorf("%d nodes answer, want 4", len(list.Items))
	}
	return s, nil
}

var codedSeries = regexp.MustCompile(`(?m)^strait_problems_by_code\{code="(STR\d+)",severity="\w+"\} (\d+)$`)

func (f faces) metrics(t *testing.T) (s shown, err error) {
	for _, c := range f.Topology.Clusters {
		for _, n := range c.Nodes {
			out, err := f.OnNode(t.Context(), n.Name, "curl", "-sS", "--max-time", "5", "http://127.0.0.1:9964/metrics")
			if err != nil {
				return s, fmt.Errorf("metrics of %s: %w", n.Name, err)
			}
			for _, m := range codedSeries.FindAllStringSubmatch(out, -1) {
				if m[2] != "0" {
					s.add(problem.Code(m[1]))
				}
			}
		}
	}
	return s, nil
}

// ui asks for what the first view of the page shows as needing attention.
func (f faces) ui(t *testing.T) (s shown, err error) {
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, f.page+"api/clusterset", nil)
	must(t, err)
	r.Header.Set("X-Strait-Token", f.token)
	client := http.Client{Timeout: 10 * time.Second}
	answer, err := client.Do(r)
	if err != nil {
		return s, err
	}
	defer answer.Body.Close()
	var view struct {
		Error string
		View  struct {
			Attention []struct {
				Code       problem.Code
				Check, Try string
			}
		}
	}
	if err := json.NewDecoder(answer.Body).Decode(&view); err != nil {
		return s, fmt.Errorf("%s: %w", answer.Status, err)
	}
	if view.Error != "" {
		return s, fmt.Errorf("%s: %s", answer.Status, view.Error)
	}
	for _, a := range view.View.Attention {
		if s.add(a.Code); s.check == "" {
			s.check, s.try = a.Check, a.Try
		}
	}
	return s, nil
}
