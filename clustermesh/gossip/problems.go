package gossip

import (
	"errors"
	"fmt"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/problem"
)

func stateProblem(err error) clustermesh.Problem {
	p := problem.Named("gossip state", "").Problem(clustermesh.Problem{Code: problem.StateFile, Message: err.Error(), Warning: true})
	var c *corruptError
	if errors.As(err, &c) {
		p.File = c.path
		p.Message = fmt.Sprintf("the saved state cannot be read: %v", c.cause)
		p.Try = "nothing to do if other daemons answer, because they hold the same records; the file was kept as " + c.aside
	} else {
		p.Try = "check the state directory: disk full, read-only or wrong owner?"
	}
	return p
}
