package client

import (
	"context"
	"io"
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
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://strait"+path, nil)
	if err != nil {
		return nil, NoAnswer(ctx, s.path, err)
	}
	response, err := s.http.Do(request)
	if err != nil {
		return nil, dialFailure(ctx, s.path, err)
	}
	if response.StatusCode == http.StatusOK {
		return response.Body, nil
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return nil, NoAnswer(ctx, s.path, err)
	}
	return nil, Refused(s.path, response.StatusCode, body)
}
