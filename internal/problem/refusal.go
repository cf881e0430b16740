package problem

import "fmt"

// Refusal says why a question cannot be answered, and what to do about it.
type Refusal struct{ Message, Try string }

// Error returns both, as one line.
func (r *Refusal) Error() string { return r.Message + "; " + r.Try }

// Refuse returns a Refusal whose message is formatted.
func Refuse(try, format string, args ...any) error {
	return &Refusal{Message: fmt.Sprintf(format, args...), Try: try}
}
