package writer

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"strait.io/strait/clustermesh/kube/write"
	"strait.io/strait/clustermesh/mcs"
	"strait.io/strait/clustermesh/written"
	"strait.io/strait/internal/testutil"
)

// derived returns the addresses in the slices of the derived Service.
func (b *bench) derived() (out []string) {
	b.t.Helper()
	list, err := b.core.DiscoveryV1().EndpointSlices(b.ns).List(b.t.Context(), metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=derived-serve"})
	must(b.t, err)
	for _, s := range list.Items {
		for _, e := range s.Endpoints {
			out = append(out, e.Addresses...)
		}
	}
	return out
}

// TestFlappingBackend: what the derived Service lists follows a choice that changes all the time no more
// often than once a second, after a few times, and is right in the end. A choice that leaves none of the
// clusters in use does not wait.
func TestFlappingBackend(t *testing.T) {
	b := newBench(t)
	w, _ := b.start()
	view := func(last byte, clusters ...int) mcs.View {
		return b.view(func(i *mcs.Import) {
			all := i.Backends
			i.Backends = nil
			for _, c := range clusters {
				i.Backends = append(i.Backends, all[c])
			}
			i.Backends[0].Addr = netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 9, 0, last}), 8080)
		})
	}
	lists := func(want string, within time.Duration) {
		t.Helper()
		testutil.Eventually(t, within, func() error {
			if got := strings.Join(b.derived(), " "); got != want {
				return fmt.Errorf("the derived Service lists %q, want %q", got, want)
			}
			return nil
		})
	}
	w.Submit(view(1, 0))
	lists("10.9.0.1", 10*time.Second)
	b.written(w)
	b.rests(w, 0)

	before, began := w.Writes()[mcsWrite], time.Now()
	n := byte(1)
	for ; time.Since(began) < 3*time.Second; n++ {
		w.Submit(view(n, 0))
		time.Sleep(20 * time.Millisecond)
	}
	made, most := w.Writes()[mcsWrite]-before, uint64(rewriteBurst+time.Since(began)/rewriteEvery+1)
	t.Logf("%d changes, %d rewrites", n, made)
	if made > most {
		t.Errorf("%d rewrites, want at most %d", made, most)
	}
	began = time.Now()
	w.Submit(view(99, 1)) // from c1 to c2
	lists("10.9.0.99", 10*time.Second)
	t.Logf("another cluster took %s", time.Since(began))
	w.Submit(view(100, 1))
	lists("10.9.0.100", 10*time.Second)
}

// mcsWrite is a slice that is written again.
var mcsWrite = write.Write{Verb: written.Apply, Kind: "EndpointSlice"}
