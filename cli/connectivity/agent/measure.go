package agent

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"time"

	"strait.io/strait/cli/connectivity"
)

// MeasureAll measures, one thing after the other. What fails is left out, and told.
func MeasureAll(ctx context.Context, m connectivity.Measure) (out connectivity.Measured) {
	failed := func(what string, err error) {
		if err != nil {
			out.Errors = append(out.Errors, what+": "+short(err))
		}
	}
	failed("connects", connects(ctx, m, &out))
	failed("throughput", stream(ctx, m, &out))
	failed("round trips", pings(ctx, m, &out))
	var err error
	out.MTU, err = pathMTU(ctx, m.Far)
	failed("MTU", err)
	return out
}

// connects alternates between the two ways, so that what else runs on the machine meets both alike.
func connects(ctx context.Context, m connectivity.Measure, out *connectivity.Measured) error {
	for i := range m.Rounds {
		for _, x := range []struct {
			to    netip.AddrPort
			rates *[]float64
		}{{m.Direct[i%len(m.Direct)], &out.DirectRates}, {m.Through, &out.ThroughRates}} {
			rate, err := connectRate(ctx, x.to, time.Duration(m.RoundMillis)*time.Millisecond)
			if err != nil {
				return fmt.Errorf("%s: %w", x.to, err)
			}
			*x.rates = append(*x.rates, rate)
		}
	}
	return nil
}

// connectRate connects one after the other for a time, and returns how many per second.
func connectRate(ctx context.Context, to netip.AddrPort, length time.Duration) (float64, error) {
	began, count := time.Now(), 0
	for time.Since(began) < length {
		conn, err := (&net.Dialer{Timeout: tryTimeout}).DialContext(ctx, "tcp", to.String())
		if err != nil {
			return 0, err
		}
		// A reset leaves no port in TIME_WAIT, of which the pod has 28,000.
		_ = conn.(*net.TCPConn).SetLinger(0)
		_ = conn.Close()
		count++
	}
	return float64(count) / time.Since(began).Seconds(), nil
}

// stream counts what one TCP connection brings.
func stream(ctx context.Context, m connectivity.Measure, out *connectivity.Measured) error {
	limit := time.Duration(m.StreamSeconds) * time.Second
	bounded, cancel := context.WithTimeout(ctx, limit+largeTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(bounded, http.MethodGet, fmt.Sprintf("http://%s/stream?seconds=%d", m.Far, m.StreamSeconds), nil)
	if err != nil {
		return err
	}
	transport := &http.Transport{DisableKeepAlives: true}
	answer, err := transport.RoundTrip(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("HTTP status %d", answer.StatusCode)
	}
	began := time.Now()
	n, err := io.Copy(io.Discard, answer.Body)
	out.StreamBytes, out.StreamSeconds = n, time.Since(began).Seconds()
	return err
}

// pingTimeout is when a ping counts as lost.
const pingTimeout = time.Second

// pings sends datagrams, one after the other.
func pings(ctx context.Context, m connectivity.Measure, out *connectivity.Measured) error {
	conn, err := new(net.Dialer).DialContext(ctx, "udp", m.Far.String())
	if err != nil {
		return err
	}
	defer conn.Close()
	lost := 0
	for range m.Pings {
		began := time.Now()
		if _, _, err := exchange(ctx, conn, ask(least), pingTimeout); err != nil {
			if lost++; lost > 10 && len(out.RTTs) == 0 || ctx.Err() != nil {
				return err
			}
			continue
		}
		out.RTTs = append(out.RTTs, float64(time.Since(began).Microseconds())/1000)
	}
	return nil
}

// largest finds the largest number from low to high that fits, if all below one that fits do too; 0
// if none does.
func largest(low, high int, fits func(int) bool) int {
	if !fits(low) {
		return 0
	}
	for low < high {
		if mid := (low + high + 1) / 2; fits(mid) {
			low = mid
		} else {
			high = mid - 1
		}
	}
	return low
}
