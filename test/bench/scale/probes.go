package scale

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// How often a kubelet asks for readiness, as set in the chart, and Prometheus for metrics.
const (
	readyEvery  = 2 * time.Second
	scrapeEvery = 15 * time.Second
)

// client asks straitd for its readiness and its metrics, as a kubelet and Prometheus do.
type client struct {
	url  string
	http http.Client
	// quiet is held during measurements, to stop probe.
	quiet sync.Mutex
}

// probe asks until ctx is done. It is no error if straitd does not answer, for example before it
// runs.
func (c *client) probe(ctx context.Context) error {
	ready, scrape := time.NewTicker(readyEvery), time.NewTicker(scrapeEvery)
	defer ready.Stop()
	defer scrape.Stop()
	for {
		path := "/readyz"
		select {
		case <-ctx.Done():
			return nil
		case <-ready.C:
		case <-scrape.C:
			path = "/metrics"
		}
		c.quiet.Lock()
		_ = c.get(ctx, path, io.Discard)
		c.quiet.Unlock()
	}
}

func (c *client) get(ctx context.Context, path string, to io.Writer) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url+path, nil)
	if err != nil {
		return err
	}
	answer, err := c.http.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	_, err = io.Copy(to, answer.Body)
	return err
}

// metrics returns the values of straitd's metrics by series, written as in the Prometheus text
// format.
func (c *client) metrics(ctx context.Context) (map[string]float64, error) {
	var text strings.Builder
	if err := c.get(ctx, "/metrics", &text); err != nil {
		return nil, fmt.Errorf("read metrics of straitd: %w", err)
	}
	out := map[string]float64{}
	for lines := bufio.NewScanner(strings.NewReader(text.String())); lines.Scan(); {
		series, value, found := strings.Cut(lines.Text(), " ")
		if v, err := strconv.ParseFloat(value, 64); found && err == nil && !strings.HasPrefix(series, "#") {
			out[series] = v
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("read metrics of straitd: there are none")
	}
	return out, nil
}

// allocated is the metric of how many bytes the process has allocated since it started.
const allocated = "go_memstats_alloc_bytes_total"

// windows is how often probes compares calls with rest. The median of so many windows excludes
// bursts in which straitd allocates for something else.
const windows = 15

// probes measures a call of /readyz: the median time in µs, on an open connection, and the bytes
// that straitd allocates for it, without those that it allocates anyway in the same time.
func (c *client) probes(ctx context.Context, calls int) (us, bytes float64, err error) {
	c.quiet.Lock()
	defer c.quiet.Unlock()
	grown := func(f func() error) (float64, error) {
		before, err := c.metrics(ctx)
		if err == nil {
			err = f()
		}
		if err != nil {
			return 0, err
		}
		after, err := c.metrics(ctx)
		return after[allocated] - before[allocated], err
	}
	var took, each []float64
	for range windows {
		start := time.Now()
		with, err := grown(func() error {
			for range calls / windows {
				began := time.Now()
				if err := c.get(ctx, "/readyz", io.Discard); err != nil {
					return err
				}
				took = append(took, float64(time.Since(began).Nanoseconds())/1000)
			}
			return nil
		})
		if err != nil {
			return 0, 0, err
		}
		rest := time.Since(start)
		without, err := grown(func() error {
			time.Sleep(rest)
			return nil
		})
		if err != nil {
			return 0, 0, err
		}
		each = append(each, max(0, with-without)/float64(calls/windows))
	}
	slices.Sort(took)
	slices.Sort(each)
	return took[len(took)/2], each[len(each)/2], nil
}
