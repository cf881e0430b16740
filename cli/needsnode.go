package cli

import (
	"fmt"

	"strait.io/strait/daemon/api"
)

// NeedsNode returns why a command cannot work on this machine, whose system is not Linux.
func NeedsNode(command, system string) *api.Failure {
	return &api.Failure{Reason: api.NoAnswer,
		Message: fmt.Sprintf("%s needs a Linux node, and this machine runs %s", command, system),
		Try:     fmt.Sprintf("run it on a node, or in the pod of a node's daemon: kubectl -n strait-system exec ds/strait -- /%s", command)}
}
