package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"syscall"
)

// FailureReason distinguishes failures, for programs.
type FailureReason string

// Why there is no answer.
const (
	// NoSocket: there is no such file.
	NoSocket FailureReason = "NoSocket"
	// Refused: the file exists, but no process listens.
	Refused FailureReason = "Refused"
	// Denied: the caller is not allowed to open the socket.
	Denied FailureReason = "Denied"
	// NoAnswer: a process listens, but did not answer in time or hung up.
	NoAnswer FailureReason = "NoAnswer"
	// NotStrait: the answer is not from strait, or from another version.
	NotStrait FailureReason = "NotStrait"
	// Starting: the daemon has no plan yet.
	Starting FailureReason = "Starting"
	// NotFound: the daemon does not know the service.
	NotFound FailureReason = "NotFound"
	// BadRequest: the daemon does not understand the request.
	BadRequest FailureReason = "BadRequest"
)

// Failure is why the client has no answer, and what to do about it.
type Failure struct {
	Reason  FailureReason
	Message string
	Try     string
	// Cause may be nil.
	Cause error
}

func (f *Failure) Error() string {
	if f.Try == "" {
		return f.Message
	}
	return f.Message + "; " + f.Try
}

func (f *Failure) Unwrap() error { return f.Cause }

// dialFailure explains an error of the connection itself.
func dialFailure(ctx context.Context, socket string, err error) error {
	f := &Failure{Reason: NoAnswer, Cause: err,
		Message: fmt.Sprintf("straitd at %s did not answer: %v", socket, rootCause(err)),
		Try:     "see its log for what keeps it busy"}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.Reason = NoSocket
		f.Message = fmt.Sprintf("there is no socket %s: straitd does not run here, or uses another runDir", socket)
		f.Try = "start straitd, or name its socket with --socket PATH or STRAIT_SOCKET"
	case errors.Is(err, syscall.ECONNREFUSED):
		f.Reason = Refused
		f.Message = fmt.Sprintf("nothing listens on %s: straitd ran here and is gone (traffic continues as last programmed)", socket)
		f.Try = "start straitd again; its log says why it ended"
		if info, err := os.Stat(socket); err == nil && info.Mode().Type() != fs.ModeSocket {
			// The kernel refuses any other file in the same way.
			f.Message = socket + " is not a socket"
			f.Try = "name straitd's socket with --socket PATH or STRAIT_SOCKET"
		}
	case errors.Is(err, fs.ErrPermission):
		f.Reason = Denied
		f.Message = fmt.Sprintf("not allowed to open %s: only root may ask straitd", socket)
		f.Try = "run the same command as root (sudo)"
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		f.Message = fmt.Sprintf("straitd at %s accepted the connection but did not answer in time", socket)
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

// answerFailure explains an answer that is not 200.
func answerFailure(socket string, status int, body []byte) error {
	var a ErrorAnswer
	if err := json.Unmarshal(body, &a); err != nil || a.Kind != KindError {
		return notStrait(socket, fmt.Errorf("HTTP status %d without an error in JSON", status))
	}
	f := &Failure{Reason: NotStrait, Message: a.Message, Try: a.Try}
	switch status {
	case http.StatusServiceUnavailable:
		f.Reason = Starting
	case http.StatusNotFound:
		f.Reason = NotFound
	case http.StatusBadRequest:
		f.Reason = BadRequest
	}
	return f
}

func notStrait(socket string, err error) error {
	return &Failure{Reason: NotStrait, Cause: err,
		Message: fmt.Sprintf("the answer from %s is not from this version of strait: %v", socket, err),
		Try:     "check that strait and straitd have the same version (strait version), and the path of the socket"}
}
