package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/cilium/ebpf"

	"strait.io/strait/datapath/socklb"
	"strait.io/strait/internal/l4"
	"strait.io/strait/internal/problem"
	"strait.io/strait/test/bench/stats"
)

// measureMemory measures how much kernel memory all pinned maps take, at one size and with twice as
// many backends, frontends or sockets. The difference gives the cost of one more.
func measureMemory(b *bench) error {
	frontends, backends, sockets := uint32(1<<14), uint32(1<<18), uint32(1<<14)
	if small := b.size.maps; small.MaxBackends > 0 {
		frontends, backends, sockets = small.MaxFrontends, small.MaxBackends, small.MaxSockets
	}
	at, err := b.memory(socklb.Config{MaxFrontends: frontends, MaxBackends: backends, MaxSockets: sockets})
	if err != nil {
		return err
	}
	for _, twice := range []struct {
		metric string
		cfg    socklb.Config
		n      uint32
	}{
		{"map_bytes_per_backend", socklb.Config{MaxFrontends: frontends, MaxBackends: 2 * backends, MaxSockets: sockets}, backends},
		{"map_bytes_per_frontend", socklb.Config{MaxFrontends: 2 * frontends, MaxBackends: backends, MaxSockets: sockets}, frontends},
		{"map_bytes_per_socket", socklb.Config{MaxFrontends: frontends, MaxBackends: backends, MaxSockets: 2 * sockets}, sockets},
	} {
		more, err := b.memory(twice.cfg)
		if err != nil {
			return err
		}
		if err := b.set(twice.metric, stats.Exactly(float64(more-at)/float64(twice.n))); err != nil {
			return err
		}
	}
	w := newWorld(l4.TCP, b.size.frontends, b.size.backends)
	lb, done, err := b.balancer("strait", b.served, b.size.maps)
	if err != nil {
		return err
	}
	empty, err1 := pinnedMemory(lb.Pins())
	err2 := problem.Strict(lb.Reconcile(w.frontends, true))
	full, err3 := pinnedMemory(lb.Pins())
	if err := errors.Join(err1, err2, err3, done()); err != nil {
		return err
	}
	return errors.Join(
		b.set("map_mib_default", stats.Exactly(float64(full)/(1<<20))),
		b.set("map_bytes_per_used_frontend", stats.Exactly(float64(full-empty)/float64(len(w.frontends)))),
	)
}

// memory returns how many bytes empty maps of a size take.
func (b *bench) memory(cfg socklb.Config) (int64, error) {
	lb, done, err := b.balancer("strait", b.served, cfg)
	if err != nil {
		return 0, err
	}
	bytes, err := pinnedMemory(lb.Pins())
	return bytes, errors.Join(err, done())
}

// pinnedMemory returns how many bytes the kernel accounts to the maps that are pinned below a
// directory.
func pinnedMemory(dir string) (bytes int64, err error) {
	seen := map[ebpf.MapID]bool{} // a map can be pinned at several paths
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		m, err := ebpf.LoadPinnedMap(path, &ebpf.LoadPinOptions{ReadOnly: true})
		if err != nil {
			return nil // a pinned link or program
		}
		defer m.Close()
		info, err := m.Info()
		if err != nil {
			return err
		}
		id, _ := info.ID()
		if seen[id] {
			return nil
		}
		seen[id] = true
		locked, ok := info.Memlock()
		if !ok {
			return fmt.Errorf("read memory of map %s: the kernel does not report it", path)
		}
		bytes += int64(locked)
		return nil
	})
	return bytes, err
}
