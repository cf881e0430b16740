package locality

import (
	"reflect"
	"slices"
	"time"

	"strait.io/strait/datapath"
	"strait.io/strait/datapath/socklb/inspect"
)

// watchWrites looks at the kernel's frontends of the callers' node all the time, and returns a function
// that ends it and says how often they changed.
func (w *world) watchWrites() (ended func() int) {
	w.Helper()
	stop, done, writes := make(chan struct{}), make(chan struct{}), 0
	go func() {
		defer close(done)
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		var last []datapath.Frontend
		for {
			// An error is a read while the maps are written; the next one sees what was.
			if now, err := inspect.Read(w.near.pins()); err == nil {
				now = slices.DeleteFunc(now, func(f datapath.Frontend) bool { return f.Addr.IP.IsLoopback() })
				if last != nil && !reflect.DeepEqual(last, now) {
					writes++
				}
				last = now
			}
			select {
			case <-tick.C:
			case <-stop:
				return
			}
		}
	}()
	return func() int {
		close(stop)
		<-done
		return writes
	}
}
