package socklb

import (
	"testing"

	"pgregory.net/rapid"

	"strait.io/strait/internal/l4"
)

// fakeMachine is Fake as a machine.
type fakeMachine struct{ *Fake }

func (m fakeMachine) decided() *table            { return m.table }
func (m fakeMachine) read() ([]installed, error) { return m.Fake.read(), nil }
func (m fakeMachine) set(index uint32) uint64    { return m.sets[index].word() }

func (m fakeMachine) sizes() Config {
	return Config{MaxFrontends: m.MaxFrontends, MaxBackends: m.MaxBackends}
}

// restart is as LB.restore.
func (m fakeMachine) restart() (err error) {
	have := m.Fake.read()
	if m.table, err = newTable(fakeKernel{m.Fake}, have, m.sizes(), false); err != nil {
		return err
	}
	live := map[uint32]bool{}
	for _, h := range have {
		live[h.index] = true
	}
	for index := range m.Fake.sets {
		if !live[index] {
			delete(m.Fake.sets, index)
		}
	}
	return nil
}

func (m fakeMachine) look(*rapid.T, map[l4.Addr]installed) {}

func TestFakeProperties(t *testing.T) {
	checkProperties(t, func(t *rapid.T) machine {
		f := &Fake{MaxFrontends: rapid.Uint32Range(2, 6).Draw(t, "frontends"), MaxBackends: rapid.Uint32Range(4, 40).Draw(t, "slots")}
		if err := f.init(); err != nil {
			t.Fatal(err)
		}
		return fakeMachine{f}
	})
}
