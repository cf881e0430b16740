// Package stats turns rounds of measurements into a number and its spread.
//
// Input is numbers, output is numbers. It must not know what was measured.
package stats

import (
	"errors"
	"math"
	"slices"
)

// Summary is the median and the quartiles of many rounds.
type Summary struct {
	Median, Q1, Q3 float64
	// N is the number of rounds.
	N int
}

// Summarize returns the summary of rounds; there must be at least one.
func Summarize(rounds []float64) Summary {
	return Summary{Median: Quantile(rounds, 0.5), Q1: Quantile(rounds, 0.25), Q3: Quantile(rounds, 0.75), N: len(rounds)}
}

// Exactly returns the summary of a value that was counted and not measured in rounds.
func Exactly(v float64) Summary { return Summary{Median: v, Q1: v, Q3: v, N: 1} }

// Median returns the middle value; NaN if there are no values.
func Median(values []float64) float64 { return Quantile(values, 0.5) }

// Quantile interpolates between the two nearest values (type 7 of Hyndman and Fan). It returns NaN
// if there are no values.
func Quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	at := q * float64(len(sorted)-1)
	low := int(at)
	high := min(low+1, len(sorted)-1)
	return sorted[low] + (at-float64(low))*(sorted[high]-sorted[low])
}

// Ratios divides two sides round by round. A disturbance in a round affects both of its sides and
// cancels out.
func Ratios(over, under []float64) []float64 {
	out := make([]float64, min(len(over), len(under)))
	for i := range out {
		out[i] = over[i] / under[i]
	}
	return out
}

// ErrNoLookup reports that a lookup could not be distinguished from an empty program, so that
// nothing can be expressed in lookups.
var ErrNoLookup = errors.New("a lookup costs no more than an empty program: the clock is too coarse or the machine too busy")

// Distinct reports whether a lookup can be distinguished from an empty program: Lookups then returns no
// error.
func Distinct(lookup, empty []float64) bool { return Median(lookup) > Median(empty) }

// Lookups expresses run times as numbers of hash lookups, round by round: the cost of a program
// above an empty one, divided by the cost of one missing lookup above an empty one.
func Lookups(run, lookup, empty []float64) ([]float64, error) {
	out := make([]float64, min(len(run), len(lookup), len(empty)))
	for i := range out {
		unit := lookup[i] - empty[i]
		if unit <= 0 {
			// One round can be disturbed. The medians can still be good.
			unit = Median(lookup) - Median(empty)
		}
		if unit <= 0 {
			return nil, ErrNoLookup
		}
		out[i] = (run[i] - empty[i]) / unit
	}
	return out, nil
}
