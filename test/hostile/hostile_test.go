package hostile

import (
	"errors"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// cases is how many cases of all rows CI makes, half of them always the same; HOSTILE_CASES is another
// number.
const cases = 6_000

func number64(t *testing.T, name string) (uint64, bool) {
	text := os.Getenv(name)
	if text == "" {
		return 0, false
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n, true
}

// TestHostile: nothing that an attacker says changes anything of an honest node or cluster, or is in force
// outside what the attacker has. HOSTILE_SEED and HOSTILE_CASE repeat one case.
func TestHostile(t *testing.T) {
	seed, given := number64(t, "HOSTILE_SEED")
	n, many := number64(t, "HOSTILE_CASES")
	if !many {
		n = cases
	}
	if testing.Short() {
		n /= 10
	}
	for _, r := range Rows {
		t.Run(r.Name, func(t *testing.T) {
			if i, repeat := number64(t, "HOSTILE_CASE"); repeat {
				if err := r.Case(seed, i); err != nil {
					t.Error(err)
				}
				return
			}
			seeds := []uint64{1, rand.Uint64()}
			if given {
				seeds = []uint64{seed}
			}
			for _, seed := range seeds {
				broken, err := r.Run(seed, int(n)*r.Share/1000/len(seeds), runtime.GOMAXPROCS(0))
				t.Logf("seed %d", seed)
				if err != nil {
					t.Errorf("%d cases broke it; the first: %v", broken, err)
				}
			}
		})
	}
}

// TestShares: the rows get all cases.
func TestShares(t *testing.T) {
	sum := 0
	for _, r := range Rows {
		sum += r.Share
	}
	if sum != 1000 {
		t.Errorf("the rows have %d of 1000 cases", sum)
	}
}

// TestBroken: a row that does not hold says how to repeat the case, and the same case is the same again.
func TestBroken(t *testing.T) {
	fails := errors.New("drawn")
	r := Row{"a row", 1000, func(c *Case) error {
		if c.IntN(100) == 0 {
			return fails
		}
		return nil
	}}
	n, err := r.Run(7, 10_000, 4)
	var b *Broken
	if !errors.As(err, &b) || !errors.Is(err, fails) || n < 10 || n > 1000 || !strings.Contains(err.Error(), "HOSTILE_SEED=7 ") {
		t.Fatalf("%d broken, %v", n, err)
	}
	if again := r.Case(b.Seed, b.Number); !errors.Is(again, fails) {
		t.Errorf("case %d again: %v", b.Number, again)
	}
}
