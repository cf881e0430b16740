package kube

import (
	"net/http"
	"sync"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

// streamBuffer is how far the API server may be ahead of each list or watch, in bytes. Go's own 4 MB would be held for each
// of a dozen at a start, when they all come at once.
const streamBuffer = 256 << 10

// bounded has all clients of a configuration use one connection with little buffers.
func bounded(cfg *rest.Config) {
	// What Go takes by itself. Said here, it sets these clients apart from others of the process: client-go shares the
	// transport of all that have the same settings.
	cfg.NextProtos = []string{"h2", "http/1.1"}
	cfg.Wrap(func(rt http.RoundTripper) http.RoundTripper {
		if t := transportOf(rt); t != nil {
			bound(t)
		}
		return rt
	})
}

// bounding is held while a transport is looked at: who finds it bounded uses it afterwards.
var bounding sync.Mutex

func bound(t *http.Transport) {
	bounding.Lock()
	defer bounding.Unlock()
	if t.HTTP2 == nil {
		t.HTTP2 = &http.HTTP2Config{MaxReceiveBufferPerStream: streamBuffer}
	}
}

// transportOf finds the transport within what client-go wraps around it; nil if there is another.
func transportOf(rt http.RoundTripper) *http.Transport {
	for {
		switch t := rt.(type) {
		case *http.Transport:
			return t
		case utilnet.RoundTripperWrapper:
			rt = t.WrappedRoundTripper()
		default:
			return nil
		}
	}
}
