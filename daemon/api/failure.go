package api

// FailureReason distinguishes failures, for programs.
type FailureReason string

// Why there is no answer.
const (
	// NoSocket: there is no such file.
	NoSocket FailureReason = "NoSocket"
	// Refused: the file exists, but no process listens.
	Refused FailureReason = "Refused"
	// Denied: the caller is not allowed to open the socket, or has no token.
	Denied FailureReason = "Denied"
	// NoAnswer: a process listens, but did not answer in time or hung up; or the daemon that was to be asked
	// for it did not.
	NoAnswer FailureReason = "NoAnswer"
	// NotStrait: the answer is not from strait, or from another version.
	NotStrait FailureReason = "NotStrait"
	// Starting: the daemon has no plan yet.
	Starting FailureReason = "Starting"
	// NotFound: the daemon does not know the service.
	NotFound FailureReason = "NotFound"
	// NotNoted: the daemon has no history of that moment.
	NotNoted FailureReason = "NotNoted"
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
