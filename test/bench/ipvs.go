package main

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"strait.io/strait/internal/l4"
	"strait.io/strait/test/bench/ipvs"
	"strait.io/strait/test/bench/stats"
)

// ipvsMetric begins the metrics of kube-proxy's IPVS mode.
const ipvsMetric = "ipvs"

// measureIPVS compares kube-proxy's IPVS services, in a namespace of their own, with strait and a
// direct connection.
func measureIPVS(b *bench) error {
	if err := ipvs.Available(); err != nil {
		b.skip(ipvsMetric, err)
		return nil
	}
	w, done, err := b.loaded(l4.TCP)
	if err != nil {
		return err
	}
	ns, err := b.namespace()
	if err != nil {
		return err
	}
	start := time.Now()
	if err := b.inside(ns, func() error { return ipvs.Load(w.frontends) }); err != nil {
		return fmt.Errorf("load IPVS: %w", err)
	}
	took := time.Since(start)
	return errors.Join(
		b.set(ipvsMetric+"_load_s", stats.Exactly(took.Seconds())),
		b.againstNamespace(ipvsMetric, w, w, ns, b.asPod), ns.Close(), done(),
	)
}

// asPod opens sockets with the client's address, as a pod has one. Otherwise the kernel would take
// the frontend's own address, because it is local while IPVS balances it.
func (b *bench) asPod(n, kind int) ([]int, error) {
	fds, err := b.madeIn(b.unserved)(n, kind)
	for _, fd := range fds {
		err = errors.Join(err, unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1),
			unix.Bind(fd, &unix.SockaddrInet4{Addr: clientIP.As4()}))
	}
	return fds, err
}
