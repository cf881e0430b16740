package kube

import (
	"net/http"
	"sync"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

// streamBuffer bounds the bytes that the API server can send ahead of each list or watch. With Go's
// default of 4 MB, a dozen lists that all arrive at start would each hold that much.
const streamBuffer = 256 << 10

// bounded makes all clients of a configuration share one connection with small buffers.
func bounded(cfg *rest.Config) {
	// These are Go's defaults. Setting them keeps these clients apart from others in the process,
	// because client-go shares one transport among clients with equal settings.
	cfg.NextProtos = []string{"h2", "http/1.1"}
	cfg.Wrap(func(rt http.RoundTripper) http.RoundTripper {
		if t := transportOf(rt); t != nil {
			bound(t)
		}
		return rt
	})
}

// bounding is held while a transport is checked and bounded: a client that shares a transport must
// not use it before it is bounded.
var bounding sync.Mutex

func bound(t *http.Transport) {
	bounding.Lock()
	defer bounding.Unlock()
	if t.HTTP2 == nil {
		t.HTTP2 = &http.HTTP2Config{MaxReceiveBufferPerStream: streamBuffer}
	}
}

// transportOf unwraps the http.Transport inside client-go's wrappers; nil if there is none.
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
