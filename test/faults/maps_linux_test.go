package faults

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"

	"strait.io/strait/datapath/socklb/layout"
	"strait.io/strait/datapath/socklb/optout"
	"strait.io/strait/internal/testutil"
)

// onMap does something with a map of the load balancer.
func (w *balanced) onMap(name string, do func(m *ebpf.Map) error) error {
	m, err := layout.Open(w.pins(), name, nil)
	if err != nil {
		return err
	}
	defer m.Close()
	return do(m)
}

// entries lists what a map holds.
func entries(m *ebpf.Map) (keys, values [][]byte, err error) {
	key, value := make([]byte, m.KeySize()), make([]byte, m.ValueSize())
	it := m.Iterate()
	for it.Next(&key, &value) {
		keys, values = append(keys, slices.Clone(key)), append(values, slices.Clone(value))
	}
	return keys, values, it.Err()
}

// change replaces each value of a map that is not zero by what becomes of it.
func change(become func(value []byte)) func(m *ebpf.Map) error {
	return func(m *ebpf.Map) error {
		keys, values, err := entries(m)
		for i, v := range values {
			if len(bytes.Trim(v, "\x00")) > 0 {
				become(v)
				err = errors.Join(err, m.Put(keys[i], v))
			}
		}
		return err
	}
}

// empty deletes all that a map holds.
func empty(m *ebpf.Map) error {
	keys, _, err := entries(m)
	for _, k := range keys {
		err = errors.Join(err, m.Delete(k))
	}
	return err
}

// fill puts foreign entries into a map until it is full.
func fill(m *ebpf.Map) error {
	key, value := make([]byte, m.KeySize()), make([]byte, m.ValueSize())
	for i := range m.MaxEntries() + 1 {
		binary.BigEndian.PutUint32(key, 0x0a420000+i)
		if err := m.Put(key, value); err != nil {
			return nil // it is full
		}
	}
	return fmt.Errorf("%s takes more than %d entries", m, m.MaxEntries())
}

// optOut makes a cgroup that opts out.
func (w *balanced) optOut(t *testing.T) {
	t.Helper()
	cgroup := filepath.Join(w.cgroup, "out")
	must(t, os.Mkdir(cgroup, 0o755))
	t.Cleanup(func() { os.Remove(cgroup) })
	must(t, optout.Add(w.pins(), cgroup))
	w.wanted = w.holdings()
}

// Another program writes into the maps, one after the other, and into all at once. What it changed
// is soon as it was; calls fail until then only if they need it.
func TestMaps(t *testing.T) {
	t.Parallel()
	w := newBalanced(t)
	write := func(name string, do func(m *ebpf.Map) error) func(w *balanced) error {
		return func(w *balanced) error { return w.onMap(name, do) }
	}
	zero := change(func(v []byte) { clear(v) })
	w.optOut(t)
	faults := []spoilt{
		{name: "services deleted", breaks: true, do: write(layout.MapServices, empty)},
		{name: "services led elsewhere", breaks: true, do: write(layout.MapServices, func(m *ebpf.Map) error {
			keys, values, err := entries(m)
			for i, k := range keys {
				err = errors.Join(err, m.Put(k, values[(i+1)%len(values)]))
			}
			return err
		})},
		{name: "services led out of the map", breaks: true, do: write(layout.MapServices, func(m *ebpf.Map) error {
			keys, values, err := entries(m)
			for i, k := range keys {
				binary.NativeEndian.PutUint32(values[i], 1<<30)
				err = errors.Join(err, m.Put(k, values[i]))
			}
			return err
		})},
		{name: "services full of foreign ones", do: write(layout.MapServices, fill), says: []string{"map services: 0 missing, 0 changed", "another program"}},
		{name: "services replaced by foreign ones", breaks: true, do: write(layout.MapServices, func(m *ebpf.Map) error { return errors.Join(empty(m), fill(m)) })},
		{name: "sets zeroed", breaks: true, do: write(layout.MapSets, zero)},
		{name: "sets too large", breaks: true, do: write(layout.MapSets, change(func(v []byte) { v[0] += 200 }))},
		{name: "backends zeroed", breaks: true, do: write(layout.MapBackends, zero)},
		{name: "backends of another address", breaks: true, do: write(layout.MapBackends, change(func(v []byte) { v[15]++ })), says: []string{"map backends: 0 missing", "another program"}},
		{name: "addresses full of foreign ones", do: write(layout.MapAddresses, fill)},
		{name: "addresses deleted", do: write(layout.MapAddresses, empty)},
		{name: "sieve zeroed", breaks: true, do: write(layout.MapAddressSieve, zero)},
		{name: "sieve lets all through", do: write(layout.MapAddressSieve, change(func(v []byte) {
			for i := range v[len(v)-1<<14:] { // the marks, after the ranges
				v[len(v)-1<<14+i] = 0xff
			}
		}))},
		{name: "opt-outs not looked for, and full of foreign ones", do: func(w *balanced) error {
			return errors.Join(w.onMap(layout.MapOptOutLevels, zero), w.onMap(layout.MapOptOuts, fill))
		}},
	}
	for _, s := range faults {
		t.Run(s.name, func(t *testing.T) { w.heals(t, s) })
	}
	t.Run("all at once", func(t *testing.T) {
		w.heals(t, spoilt{breaks: true, do: func(w *balanced) error {
			var errs []error
			for _, s := range faults {
				if !strings.Contains(s.name, "full") {
					errs = append(errs, s.do(w))
				}
			}
			return errors.Join(errs...)
		}})
		w.obeys(t)
	})
	t.Run("again and again", func(t *testing.T) {
		for range 100 {
			must(t, faults[0].do(w))
		}
		w.heals(t, faults[0])
		w.obeys(t)
	})
	t.Run("all pins and maps", func(t *testing.T) {
		w.heals(t, spoilt{breaks: true, do: func(w *balanced) error {
			return errors.Join(faults[0].do(w), each(hookNames(), func(name string) error { return w.onLink(name, detach) }),
				each(w.everyPin(), func(name string) error { return foreignPin(w.at(name)) }))
		}})
		w.obeys(t)
	})
}

// Another program freezes the map of services, which cannot be undone: what is there goes on, also
// when its backends change, and what is new gets a Problem.
func TestFrozenMap(t *testing.T) {
	t.Parallel()
	w := newBalanced(t)
	must(t, w.onMap(layout.MapServices, (*ebpf.Map).Freeze))
	w.obeys(t)
	w.write(t, "manifests/more.yaml", service("more"))
	w.life.says(t, "STR3104", "default/more", "operation not permitted")
	must(t, w.call())
}

// What only programs write is left as it is: the daemon goes on, and so do calls.
func TestCountersAndRecords(t *testing.T) {
	t.Parallel()
	w := newBalanced(t)
	kept := w.pod.open(w.vip)
	for _, name := range []string{layout.MapAffinities, layout.MapSocketsMore} {
		must(t, w.onMap(name, empty))
	}
	for _, name := range []string{layout.MapSockets, layout.MapFrontendCounters, layout.MapBackendCounters, layout.MapTotals} {
		must(t, w.onMap(name, func(m *ebpf.Map) error {
			if m.Type() == ebpf.PerCPUArray {
				return nil // entries reads one value for each key
			}
			return change(func(v []byte) { clear(v) })(m)
		}))
	}
	testutil.Eventually(t, healing, w.asWanted)
	if got := kept.ask(); got != podA.String() {
		t.Errorf("the socket that was open: %s", got)
	}
	w.obeys(t)
}
