package kube

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// The API server cannot send much that is not read yet: with each list and watch it would be memory of the daemon.
func TestReadAhead(t *testing.T) {
	var sent atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 {
			t.Errorf("%s, want HTTP/2", r.Proto)
		}
		piece := make([]byte, 16<<10)
		for range 512 {
			n, err := w.Write(piece)
			if err != nil {
				return
			}
			sent.Add(int64(n))
		}
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	c, err := NewClient(&rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: ca}})
	if err != nil {
		t.Fatal(err)
	}
	body, err := c.builtin.REST().Get().AbsPath("/").Stream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	for last := int64(-1); last != sent.Load(); time.Sleep(500 * time.Millisecond) {
		last = sent.Load()
	}
	if n := sent.Load(); n < streamBuffer/2 || n > 2*streamBuffer {
		t.Errorf("%d bytes were sent before any was read, want about %d", n, streamBuffer)
	}
}
