package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"syscall"

	"strait.io/strait/daemon/api"
)

// NoAnswer explains an error of the way to a daemon.
func NoAnswer(ctx context.Context, name string, err error) *api.Failure {
	f := &api.Failure{Reason: api.NoAnswer, Cause: err,
		Message: fmt.Sprintf("straitd at %s did not answer: %v", name, rootCause(err)),
		Try:     "see its log for what keeps it busy"}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		f.Message = fmt.Sprintf("straitd at %s accepted the connection but did not answer in time", name)
	}
	return f
}

// dialFailure explains an error of the connection to a socket.
func dialFailure(ctx context.Context, socket string, err error) *api.Failure {
	f := NoAnswer(ctx, socket, err)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.Reason = api.NoSocket
		f.Message = fmt.Sprintf("there is no socket %s: straitd does not run here, or uses another runDir", socket)
		f.Try = "start straitd, or name its socket with --socket PATH or STRAIT_SOCKET"
	case errors.Is(err, syscall.ECONNREFUSED):
		f.Reason = api.Refused
		f.Message = fmt.Sprintf("nothing listens on %s: straitd ran here and is gone (traffic continues as last programmed)", socket)
		f.Try = "start straitd again; its log says why it ended"
		if info, err := os.Stat(socket); err == nil && info.Mode().Type() != fs.ModeSocket {
			// The kernel refuses any other file in the same way.
			f.Message = socket + " is not a socket"
			f.Try = "name straitd's socket with --socket PATH or STRAIT_SOCKET"
		}
	case errors.Is(err, fs.ErrPermission):
		f.Reason = api.Denied
		f.Message = fmt.Sprintf("not allowed to open %s: only root may ask straitd", socket)
		f.Try = "run the same command as root (sudo)"
	}
	return f
}

// rootCause drops the wrapping that repeats the URL and the socket.
func rootCause(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}

// Refused explains an answer of HTTP that is not 200.
func Refused(name string, status int, body []byte) error {
	var a api.ErrorAnswer
	if err := json.Unmarshal(body, &a); err != nil || a.Kind != api.KindError {
		return notStrait(name, fmt.Errorf("HTTP status %d without an error in JSON", status))
	}
	f := &api.Failure{Reason: api.NotStrait, Message: a.Message, Try: a.Try}
	switch status {
	case http.StatusServiceUnavailable:
		f.Reason = api.Starting
	case http.StatusBadGateway, http.StatusTooManyRequests:
		f.Reason = api.NoAnswer
	case http.StatusUnauthorized:
		f.Reason = api.Denied
	case http.StatusGone:
		f.Reason = api.NotNoted
	case http.StatusNotFound:
		f.Reason = api.NotFound
	case http.StatusBadRequest:
		f.Reason = api.BadRequest
	}
	return f
}

func notStrait(name string, err error) error {
	return &api.Failure{Reason: api.NotStrait, Cause: err,
		Message: fmt.Sprintf("the answer from %s is not from this version of strait: %v", name, err),
		Try:     "check that strait and straitd have the same version (strait version), and the path of the socket"}
}
