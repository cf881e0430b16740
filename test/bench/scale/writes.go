package scale

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// counted matches the requests that change the kinds of objects that strait writes. Besides strait,
// only this package makes such requests.
var counted = regexp.MustCompile(`^apiserver_request_total\{.*resource="(?:serviceimports|serviceexports|services|endpointslices|servicepolicies)".*verb="(?:POST|PUT|PATCH|APPLY|DELETE)".*\} ([0-9.e+]+)$`)

// statusWrites matches those of the statuses of policies.
var statusWrites = regexp.MustCompile(`^apiserver_request_total\{.*resource="servicepolicies".*subresource="status".*verb="(?:PATCH|APPLY)".*\} ([0-9.e+]+)$`)

// writes returns how many such requests the API server has counted.
func (w *world) writes(ctx context.Context) (total int, err error) {
	text, err := w.core.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return 0, fmt.Errorf("read metrics of the API server: %w", err)
	}
	n, err := sumWrites(string(text))
	if err == nil && n == 0 {
		err = fmt.Errorf("read metrics of the API server: no writes are counted, so their form has changed")
	}
	return n, err
}

// statuses returns how many writes of policies' statuses the API server has counted.
func (w *world) statuses(ctx context.Context) (int, error) {
	text, err := w.core.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return 0, fmt.Errorf("read metrics of the API server: %w", err)
	}
	return sum(string(text), statusWrites)
}

func sumWrites(metrics string) (total int, err error) { return sum(metrics, counted) }

// sum adds up the values of the metrics that an expression matches.
func sum(metrics string, counted *regexp.Regexp) (total int, err error) {
	for line := range strings.Lines(metrics) {
		if m := counted.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			n, err := strconv.ParseFloat(m[1], 64)
			if err != nil {
				return 0, fmt.Errorf("read metrics of the API server: %w", err)
			}
			total += int(n)
		}
	}
	return total, nil
}

// rest waits until there are no writes for a while, and returns the total number of writes.
func (w *world) rest(ctx context.Context, while time.Duration) (int, error) {
	last, since := -1, time.Now()
	for {
		n, err := w.writes(ctx)
		if err != nil {
			return 0, err
		}
		if n != last {
			last, since = n, time.Now()
		} else if time.Since(since) >= while {
			return n, nil
		}
		select {
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		case <-time.After(500 * time.Millisecond):
		}
	}
}
