package fleet

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"strait.io/strait/cli"
	"strait.io/strait/daemon/api"
)

// fakePlace is the place of the cluster east.
type fakePlace struct {
	alone   []string
	mute    bool
	written []string
}

func (p *fakePlace) whatIf(_ context.Context, id string) (*api.WhatIf, error) {
	if p.mute {
		return nil, errors.New("no daemon is ready")
	}
	return &api.WhatIf{Change: "drain " + id, Alone: p.alone}, nil
}

func (p *fakePlace) write(_ context.Context, id, value string) (string, error) {
	if id != "east" {
		return "", cli.UsageError("this is east")
	}
	p.written = append(p.written, value)
	return "here", nil
}

func (*fakePlace) counts() bool { return true }

// TestDrain: what would happen is shown first, and the place is written only if no Service would
// stay there, or by force.
func TestDrain(t *testing.T) {
	for name, c := range map[string]struct {
		place         fakePlace
		id            string
		dryRun, force bool
		code          int
		written       string
		text          string
	}{
		"all move":                  {id: "east", written: "true", text: "if drain east"},
		"only asked":                {id: "east", dryRun: true, text: "if drain east"},
		"a Service stays":           {place: fakePlace{alone: []string{"a/b"}}, id: "east", code: 1, text: "no other endpoint serves a/b"},
		"it stays, by force":        {place: fakePlace{alone: []string{"a/b"}}, id: "east", force: true, written: "true", text: "drained: here"},
		"another cluster":           {id: "west", code: 2, text: "this is east"},
		"no daemon answers":         {place: fakePlace{mute: true}, id: "east", force: true, code: 1, text: "no daemon"},
		"only asked, and no answer": {place: fakePlace{mute: true}, id: "east", dryRun: true, code: 3, text: "no daemon"},
	} {
		var out bytes.Buffer
		a := &cli.App{Stdout: &out, ASCII: true}
		err := drain(t.Context(), a, &c.place, c.id, "true", c.dryRun, c.force)
		text, code := out.String(), 0
		if err != nil {
			text, code = text+err.Error(), cli.ExitProblem
		}
		var exit *cli.ExitError
		if errors.As(err, &exit) {
			code = exit.Code
		}
		if code != c.code || strings.Join(c.place.written, " ") != c.written || !strings.Contains(text, c.text) {
			t.Errorf("%s: exit code %d, wrote %q:\n%s", name, code, c.place.written, text)
		}
	}
	place, out := fakePlace{mute: true}, bytes.Buffer{}
	if err := undrain(t.Context(), &cli.App{Stdout: &out}, &place, "east"); err != nil || len(place.written) != 1 || place.written[0] != "" {
		t.Errorf("undrain without a daemon: %v, wrote %q", err, place.written)
	}
}
