package locality

import (
	"flag"
	"fmt"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var update = flag.Bool("update", false, "draw the picture of docs/locality.md anew")

// picture shows what was counted when it was drawn. No run counts quite the same, so the test does not
// compare the files, but what both have counted.
const picture = "../../docs/images/failback.svg"

// The story of the picture: all pods, none, one, and all again.
var story = []struct{ at, ready int }{{0, pods}, {5, 0}, {10, 1}, {18, pods}}

const (
	curveSeconds = 36
	// Of some 200 calls in a second, fewer than curveLeast are counted when the machine stands
	// still: then the near pods have counted theirs, and the calls to the others are still on their
	// way.
	curveLeast = 20
)

// curve plays the story of cilium#46633, with the default ramp and the time of the wall: 30 pods, none,
// one, and 30 again. Every second, it compares what stays in the cluster, as the backends count it, with
// what strait explains.
func (w *world) curve() {
	l, began := w.call(5*time.Millisecond), time.Now()
	var planned [curveSeconds]float64 // in the middle of each second
	for s := range curveSeconds {
		time.Sleep(time.Until(began.Add(time.Duration(s) * time.Second)))
		for _, e := range story {
			if e.at == s && s > 0 {
				w.near.ready(e.ready)
			}
		}
		time.Sleep(time.Until(began.Add(time.Duration(s)*time.Second + 500*time.Millisecond)))
		got, err := w.plan()
		if got == nil {
			w.Fatal(err)
		}
		planned[s] = got[w.near.name]
	}
	var counted [curveSeconds]float64
	still := 0
	for s := range curveSeconds {
		from := began.Add(time.Duration(s) * time.Second)
		got, n := w.counts.between(from, from.Add(time.Second))
		counted[s] = got[w.near.name]
		if n < curveLeast {
			still++
			w.Logf("in second %d, only %d calls are counted", s, n)
			continue
		}
		// What is explained changes within a second: one before and one after bound what was counted in it.
		low, high := planned[s], planned[s]
		for _, p := range planned[max(0, s-1):min(s+2, curveSeconds)] {
			low, high = min(low, p), max(high, p)
		}
		chance := 5 * math.Sqrt(max(high*(1-high), low*(1-low), 0.01)/float64(max(n, 1)))
		if counted[s] < low-chance || counted[s] > high+chance {
			w.Errorf("in second %d, %.0f %% of %d stay; explained are %.0f %% to %.0f %%", s, 100*counted[s], n, 100*low, 100*high)
		}
	}
	if still > curveSeconds/6 {
		w.Errorf("in %d of %d seconds, too few calls are counted", still, curveSeconds)
	}
	l.mustBeWhole(began)
	if *update {
		w.must(os.WriteFile(picture, []byte(draw(planned[:], counted[:])), 0o644))
	}
	w.isAsDrawn(counted[:])
}

// isAsDrawn compares what was counted with what the picture shows. A busy machine can be a second late.
func (w *world) isAsDrawn(counted []float64) {
	w.Helper()
	text, err := os.ReadFile(picture)
	w.must(err)
	drawn := parse(string(text))
	if len(drawn) != len(counted) {
		w.Fatalf("%s shows %d seconds, want %d; draw it with go test ./test/locality -run TestTraffic -update", picture, len(drawn), len(counted))
	}
	off := 0
	for s := range counted {
		near := math.Inf(1)
		for _, d := range drawn[max(0, s-1):min(s+2, len(drawn))] {
			near = min(near, math.Abs(d-counted[s]))
		}
		if near > 0.15 {
			off++
			w.Logf("in second %d, %.0f %% stay; the picture shows %.0f %%", s, 100*counted[s], 100*drawn[s])
		}
	}
	if off > 2 {
		w.Errorf("%s is not what happens in %d of %d seconds; draw it with go test ./test/locality -run TestTraffic -update", picture, off, len(counted))
	}
}

var dot = regexp.MustCompile(`<circle [^>]*><title>[0-9]+ s: ([0-9.]+) %`)

// parse returns what a picture shows as counted.
func parse(svg string) (out []float64) {
	for _, m := range dot.FindAllStringSubmatch(svg, -1) {
		v, err := strconv.ParseFloat(m[1], 64)
		if err == nil {
			out = append(out, v/100)
		}
	}
	return out
}

// draw returns a picture of what was explained as a line, and of what was counted as dots, a second each.
func draw(planned, counted []float64) string {
	const left, top, wide, high = 50, 20, 600, 200
	x := func(s float64) float64 { return left + s*wide/curveSeconds }
	y := func(v float64) float64 { return top + high*(1-v) }
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">`, left+wide+20, top+high+60)
	line(`<rect width="100%%" height="100%%" fill="white"/>`)
	for _, v := range []float64{0, 0.5, 1} {
		line(`<path d="M%d %.0fH%d" stroke="#ddd"/><text x="%d" y="%.0f" text-anchor="end">%.0f %%</text>`, left, y(v), left+wide, left-6, y(v)+4, 100*v)
	}
	for s := 0; s <= curveSeconds; s += 6 {
		line(`<text x="%.0f" y="%d" text-anchor="middle">%d s</text>`, x(float64(s)), top+high+18, s)
	}
	for _, e := range story {
		line(`<path d="M%.0f %dV%d" stroke="#bbb" stroke-dasharray="4 3"/><text x="%.0f" y="%d" fill="#777">%d</text>`, x(float64(e.at)), top, top+high, x(float64(e.at))+3, top-6, e.ready)
	}
	var path strings.Builder
	for s, v := range planned {
		fmt.Fprintf(&path, "%s%.0f %.1f", map[bool]string{true: "M", false: "L"}[s == 0], x(float64(s)+0.5), y(v))
	}
	line(`<path d="%s" fill="none" stroke="#06c" stroke-width="2"/>`, path.String())
	for s, v := range counted {
		line(`<circle cx="%.0f" cy="%.1f" r="3" fill="#c40"><title>%d s: %.1f %%</title></circle>`, x(float64(s)+0.5), y(v), s, 100*v)
	}
	line(`<text x="%d" y="%d" fill="#06c">explained: what stays in the cluster</text>`, left, top+high+45)
	line(`<text x="%d" y="%d" fill="#c40">counted by the pods, each second</text>`, left+250, top+high+45)
	line(`<text x="%d" y="%d" fill="#777">above: ready pods</text>`, left+480, top+high+45)
	b.WriteString("</svg>\n")
	return b.String()
}
