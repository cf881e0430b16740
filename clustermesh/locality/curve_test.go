package locality_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"strait.io/strait/clustermesh/locality"
)

var update = flag.Bool("update", false, "redraw the picture of docs/locality.md")

const picture = "../../docs/images/spill.svg"

// TestCurve plays what a cluster of 30 pods goes through that loses all of them, gets one back, and then
// all, with the default ramp, and draws which part of the traffic stays. The picture is in the docs.
func TestCurve(t *testing.T) {
	ready := func(second int) int {
		switch {
		case second < 10:
			return 30
		case second < 20:
			return 0
		case second < 35:
			return 1
		}
		return 30
	}
	const seconds = 60
	var pods, stays []float64
	var past []locality.Level
	for s := range seconds + 1 {
		in := slices.Concat(many(ready(s), 30-ready(s), "a", "n2", "r1", "z1"), many(30, 0, "b", "n9", "r2", "z9"))
		c := locality.Select(self, in, spills, locality.Ramp{Past: past, Step: 0.1})
		past = c.Levels
		pods, stays = append(pods, float64(ready(s))/30), append(stays, shares(c)["a"])
	}
	for second, want := range map[int]float64{9: 1, 10: 0, 19: 0, 20: 1.4 / 30, 34: 1.4 / 30, 35: 1.4/30 + 0.1, 40: 1.4/30 + 0.6, 45: 1, seconds: 1} {
		if got := stays[second]; got < want-0.001 || got > want+0.001 {
			t.Errorf("after %d s, %.3f stays, want %.3f", second, got, want)
		}
	}
	svg := draw(seconds, pods, stays)
	if *update {
		if err := os.WriteFile(picture, []byte(svg), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile(picture); err != nil || string(have) != svg {
		t.Errorf("%s is not what happens (%v); draw it with go test ./clustermesh/locality -update", picture, err)
	}
}

// draw returns a picture with two curves of values from 0 to 1, one value a second.
func draw(seconds int, pods, stays []float64) string {
	const left, top, wide, high = 50, 20, 600, 200
	x := func(s int) int { return left + s*wide/seconds }
	y := func(v float64) float64 { return top + high*(1-v) }
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">`, left+wide+20, top+high+60)
	line(`<rect width="100%%" height="100%%" fill="white"/>`)
	for _, v := range []float64{0, 0.5, 1} {
		line(`<path d="M%d %.0fH%d" stroke="#ddd"/><text x="%d" y="%.0f" text-anchor="end">%.0f %%</text>`, left, y(v), left+wide, left-6, y(v)+4, 100*v)
	}
	for s := 0; s <= seconds; s += 10 {
		line(`<text x="%d" y="%d" text-anchor="middle">%d s</text>`, x(s), top+high+18, s)
	}
	for _, c := range []struct {
		values       []float64
		color, style string
	}{{pods, "#999", "4 3"}, {stays, "#06c", "none"}} {
		var path strings.Builder
		for s, v := range c.values {
			if s == 0 {
				fmt.Fprintf(&path, "M%d %.1f", x(s), y(v))
			} else {
				fmt.Fprintf(&path, "H%dV%.1f", x(s), y(v))
			}
		}
		line(`<path d="%s" fill="none" stroke="%s" stroke-width="2" stroke-dasharray="%s"/>`, path.String(), c.color, c.style)
	}
	line(`<text x="%d" y="%d" fill="#06c">connections that stay in the cluster</text>`, left, top+high+45)
	line(`<text x="%d" y="%d" fill="#777">its pods that are ready (of 30)</text>`, left+300, top+high+45)
	b.WriteString("</svg>\n")
	return b.String()
}
