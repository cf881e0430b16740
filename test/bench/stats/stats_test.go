package stats

import (
	"errors"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestQuantile(t *testing.T) {
	for _, tc := range []struct {
		values []float64
		q      float64
		want   float64
	}{
		{[]float64{7}, 0.5, 7},
		{[]float64{3, 1, 2}, 0.5, 2},
		{[]float64{4, 1, 3, 2}, 0.5, 2.5},
		{[]float64{1, 2, 3, 4, 5}, 0.25, 2},
		{[]float64{1, 2, 3, 4, 5}, 1, 5},
		{[]float64{1, 2}, 0, 1},
	} {
		if got := Quantile(tc.values, tc.q); got != tc.want {
			t.Errorf("quantile %v of %v: %v, want %v", tc.q, tc.values, got, tc.want)
		}
	}
	if got := Median(nil); !math.IsNaN(got) {
		t.Errorf("median of nothing: %v", got)
	}
}

func TestQuantileIsOrdered(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64Range(-1e6, 1e6), 1, 50).Draw(t, "values")
		before := slices.Clone(values)
		s := Summarize(values)
		if s.Q1 > s.Median || s.Median > s.Q3 || s.N != len(values) {
			t.Fatalf("%+v of %v", s, values)
		}
		if s.Q1 < slices.Min(values) || s.Q3 > slices.Max(values) {
			t.Fatalf("%+v lies outside of %v", s, values)
		}
		if !slices.Equal(before, values) {
			t.Fatal("the rounds were reordered: sides could no longer be paired")
		}
	})
}

// A disturbance that hits both sides of a round leaves the ratio alone; that is why rounds are paired.
func TestRatiosArePaired(t *testing.T) {
	got := Ratios([]float64{11, 110, 22}, []float64{10, 100, 20})
	for _, r := range got {
		if math.Abs(r-1.1) > 1e-9 {
			t.Errorf("ratios %v, want 1.1 thrice", got)
		}
	}
	if got := Ratios([]float64{1, 2}, []float64{1}); len(got) != 1 {
		t.Errorf("a round without its other side was counted: %v", got)
	}
}

func TestLookups(t *testing.T) {
	got, err := Lookups([]float64{99, 99}, []float64{61, 30}, []float64{37, 37})
	if err != nil {
		t.Fatal(err)
	}
	if want := 62.0 / 24; math.Abs(got[0]-want) > 1e-9 {
		t.Errorf("got %v lookups, want %v", got[0], want)
	}
	if want := 62.0 / 8.5; math.Abs(got[1]-want) > 1e-9 { // the disturbed round, by the medians
		t.Errorf("disturbed round: %v lookups, want %v", got[1], want)
	}
	if _, err := Lookups([]float64{99}, []float64{37}, []float64{37}); !errors.Is(err, ErrNoLookup) {
		t.Errorf("a miss that costs nothing: %v", err)
	}
	for _, c := range []struct {
		lookup []float64
		want   bool
	}{{nil, false}, {[]float64{37}, false}, {[]float64{30, 30, 61}, false}, {[]float64{30, 61, 61}, true}} {
		if got := Distinct(c.lookup, []float64{37}); got != c.want {
			t.Errorf("%v: distinct is %v", c.lookup, got)
		}
		if _, err := Lookups([]float64{99, 99, 99}, c.lookup, []float64{37, 37, 37}); err != nil && c.want {
			t.Errorf("%v: distinct, and yet %v", c.lookup, err)
		}
	}
}
