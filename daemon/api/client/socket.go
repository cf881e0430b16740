package client

import (
	"context"
	"io"
	"maps"
	"net"
	"net/http"
)

// socket is the Transport of a daemon's unix socket.
type socket struct {
	path string
	http *http.Client
}

// OnSocket makes a client of the straitd behind a unix socket. It does not connect yet.
func OnSocket(path string) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}
	return Over(socket{path, &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}}, path)
}

// Get is that of Transport.
func (s socket) Get(ctx context.Context, path string) (io.ReadCloser, error) {
	return Fetch(ctx, s.http, "http://strait"+path, nil, func(err error) error { return dialFailure(ctx, s.path, err) },
		func(status int, body []byte) error { return Refused(s.path, status, body) })
}

// Fetch sends a GET request, and returns the body of an answer that is 200. Otherwise the error is
// what failed makes of an error on the way, or refused of another answer.
func Fetch(ctx context.Context, h *http.Client, url string, header http.Header, failed func(error) error,
	refused func(status int, body []byte) error) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, failed(err)
	}
	maps.Copy(request.Header, header)
	response, err := h.Do(request)
	if err != nil {
		return nil, failed(err)
	}
	if response.StatusCode == http.StatusOK {
		return response.Body, nil
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return nil, failed(err)
	}
	return nil, refused(response.StatusCode, body)
}
