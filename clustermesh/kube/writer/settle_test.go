package writer

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"strait.io/strait/clustermesh/mcs"
	"strait.io/strait/internal/testutil"
)

// heard keeps what was logged.
type heard struct {
	mu   sync.Mutex
	text strings.Builder
}

func (h *heard) Write(line []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.Write(line)
}

func (h *heard) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.String()
}

// warnings makes a writer log to h what is a warning or worse.
func (h *heard) warnings(c *Config) {
	c.Log = slog.New(slog.NewTextHandler(h, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// all makes a writer log everything to h.
func (h *heard) all(c *Config) {
	c.Log = slog.New(slog.NewTextHandler(h, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// before makes a writer call act before each of its writes, and gives it the time to see what act did. It has
// several workers: act is called by one at a time.
func before(act func()) func(*Config) {
	var mu sync.Mutex
	return func(c *Config) {
		c.Leading = func() bool {
			mu.Lock()
			defer mu.Unlock()
			act()
			time.Sleep(50 * time.Millisecond)
			return true
		}
	}
}

// What is wanted may change faster than it is written: that is no error.
func TestWishThatChangesAllTheTime(t *testing.T) {
	b := newBench(t)
	var w *Writer
	var log heard
	changes := 0 // one service is in one hand
	wish := func() mcs.View {
		return b.view(func(i *mcs.Import) { i.Labels = map[string]string{"change": fmt.Sprint(changes)} })
	}
	w, _ = b.start(before(func() {
		if changes < 5*maxRounds {
			changes++
			w.Submit(wish())
		}
	}), log.warnings)
	w.Submit(wish())
	// Not that it rests: on a busy machine it can write nothing for a while between two changes.
	testutil.Eventually(t, time.Minute, func() error {
		i, err := b.mcs.MulticlusterV1beta1().ServiceImports(b.ns).Get(t.Context(), "serve", metav1.GetOptions{})
		if err == nil {
			err = ready(i)
		}
		if want := fmt.Sprint(5 * maxRounds); err == nil && i.Labels["change"] != want {
			err = fmt.Errorf("labels %v, want change %s", i.Labels, want)
		}
		return err
	})
	b.rests(w, 0)
	if strings.Contains(log.String(), "keeps changing") {
		t.Errorf("logged: %s", log.String())
	}
}

func TestSomebodyElseWritesWhatIsOurs(t *testing.T) {
	b := newBench(t)
	n := 0
	w, _ := b.start(before(func() {
		n++
		patch := fmt.Sprintf(`{"spec":{"trafficDistribution":"theirs-%d"}}`, n)
		// It fails before the first write: there is no import yet.
		_, _ = b.mcs.MulticlusterV1beta1().ServiceImports(b.ns).Patch(t.Context(), "serve", types.MergePatchType, []byte(patch),
			metav1.PatchOptions{FieldManager: "another"})
	}))
	w.Submit(b.view(func(i *mcs.Import) { i.TrafficDistribution = "PreferClose" }))
	testutil.Eventually(t, 20*time.Second, func() error {
		if ps := w.Problems(); len(ps) != 1 || !strings.Contains(ps[0].Message, "keeps changing") || !strings.HasPrefix(ps[0].Object, "ServiceImport") {
			return fmt.Errorf("problems %v", ps)
		}
		return nil
	})
}
