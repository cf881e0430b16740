package main

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"strait.io/strait/internal/l4"
	"strait.io/strait/test/bench/kubeproxy"
	"strait.io/strait/test/bench/stats"
)

// ruleSet is a rule set to measure.
type ruleSet struct {
	metric   string
	shape    kubeproxy.Shape
	services int
}

// measureProxy compares kube-proxy's rules, in their own namespace, with strait and a direct
// connection in a namespace without netfilter.
func measureProxy(b *bench) error {
	w, done, err := b.loaded(l4.TCP)
	if err != nil {
		return err
	}
	for _, r := range []ruleSet{
		{"nft_chains", kubeproxy.Chains, min(b.size.chainServices, len(w.frontends))},
		{"nft", kubeproxy.Maps, len(w.frontends)},
	} {
		if err := b.measureRules(r, w); err != nil {
			return fmt.Errorf("%s: %w", r.metric, err)
		}
	}
	return done()
}

func (b *bench) measureRules(r ruleSet, w *world) error {
	proxied := newWorld(l4.TCP, r.services, b.size.backends)
	took, err := b.loadRules(r.shape, proxied)
	if err != nil {
		return err
	}
	if err := b.set(r.metric+"_load_s", stats.Exactly(took.Seconds())); err != nil {
		return err
	}
	err = b.againstNamespace(r.metric, w, proxied, b.proxied, b.madeIn(b.unserved))
	return errors.Join(err, b.inside(b.proxied, func() error { return nft("delete", "table", "ip", "kube-proxy") }))
}

// againstNamespace compares a direct connection and strait, which has w, with what balances the
// frontends of proxied in a namespace. open opens the sockets there.
func (b *bench) againstNamespace(metric string, w, proxied *world, in netns.NsHandle, open func(n, kind int) ([]int, error)) error {
	plain, err := listenTCP(podPort)
	if err != nil {
		return err
	}
	var behind int
	if err := b.inside(in, func() error { behind, err = listenTCP(podPort); return err }); err != nil {
		return err
	}
	for _, p := range []pattern{hot, random} {
		sides := []side{
			b.bareSide("direct", plain, func() netip.AddrPort { return p.direct(w) }),
			b.servedSide("strait", plain, func() netip.AddrPort { return p.through(w) }),
			{name: "proxy", open: func(n, kind int) (fds []int, err error) {
				err = b.inside(in, func() error { fds, err = open(n, kind); return err })
				return fds, err
			}, dial: func() netip.AddrPort { return p.through(proxied) }, listener: behind},
		}
		if err := b.againstProxy(metric, p, sides); err != nil {
			return err
		}
	}
	return errors.Join(unix.Close(plain), unix.Close(behind))
}

// againstProxy compares connects, and requests with answers on existing connections.
func (b *bench) againstProxy(metric string, p pattern, sides []side) error {
	suffix := p.suffix()
	connects, err := turns(b.size.nftRounds, b.size.samples, unix.SOCK_STREAM, sides, timeConnect)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	exchanges, err := turns(b.size.nftRounds, b.size.samples/4, unix.SOCK_STREAM, sides, timeExchange)
	if err != nil {
		return fmt.Errorf("exchange: %w", err)
	}
	return errors.Join(
		b.setRatios(connects, "direct", map[string]string{
			metric + "_connect_ratio" + suffix: "proxy", metric + "_strait_connect_ratio" + suffix: "strait",
		}),
		b.setRatios(exchanges, "direct", map[string]string{
			metric + "_rr_ratio" + suffix: "proxy", metric + "_strait_rr_ratio" + suffix: "strait",
		}),
	)
}

// timeExchange returns the mean time of several exchanges on one connection, after one that is not
// counted.
func timeExchange(s *side, fd int) (time.Duration, error) {
	const exchanges = 16
	p, err := dialPair(s, fd)
	if err != nil {
		return 0, err
	}
	if _, err := p.exchange(); err != nil {
		return 0, err
	}
	var sum time.Duration
	for range exchanges {
		took, err := p.exchange()
		if err != nil {
			return 0, err
		}
		sum += took
	}
	return sum / exchanges, unix.Close(p.server)
}

// loadRules loads the whole rule set in one transaction, as kube-proxy does when it starts.
func (b *bench) loadRules(shape kubeproxy.Shape, w *world) (time.Duration, error) {
	path := filepath.Join(b.dir, "rules.nft")
	f, err := os.Create(path)
	if err != nil {
		return 0, err
	}
	if err := errors.Join(kubeproxy.Write(f, shape, podIPs, w.frontends), f.Close()); err != nil {
		return 0, fmt.Errorf("write %s: %w", path, err)
	}
	var took time.Duration
	err = b.inside(b.proxied, func() error {
		start := time.Now()
		err := nft("-f", path)
		took = time.Since(start)
		return err
	})
	return took, err
}

func nft(args ...string) error {
	out, err := exec.Command("nft", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("nft %s: %w: %.400s", args[0], err, out)
	}
	return nil
}
