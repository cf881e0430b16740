package gossip

import (
	"errors"
	"fmt"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/gossip/statedir"
	"strait.io/strait/clustermesh/gossip/statelog"
	"strait.io/strait/internal/problem"
)

func stateProblem(err error) clustermesh.Problem {
	p := problem.Named("gossip state", "").Problem(clustermesh.Problem{Code: problem.StateFile, Message: err.Error(), Warning: true})
	c, corrupt := errors.AsType[*statedir.Corrupt](err)
	_, damaged := errors.AsType[*statelog.Damage](err)
	switch {
	case corrupt:
		p.File = c.Path
		p.Message = fmt.Sprintf("the saved state cannot be read: %v", c.Cause)
		p.Try = "nothing to do if other daemons answer, because they hold the same records; the file was kept as " + c.Aside
	case damaged:
		p.Message = fmt.Sprintf("a part of the saved state cannot be read: %v", err)
		p.Try = "nothing to do after a crash if other daemons answer, because they hold the same records; otherwise check the disk"
	default:
		p.Try = "check the state directory: disk full, read-only or wrong owner?"
	}
	return p
}
