package node

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"strait.io/strait/cli"
	"strait.io/strait/cli/check"
	"strait.io/strait/cli/checklist"
	"strait.io/strait/daemon/api"
)

// Clusters finds out what the clusters of the flags have of what strait needs, before it is installed.
type Clusters func(context.Context, *cli.App, cli.Before) ([]check.Site, error)

// checkBefore checks clusters before strait is installed in them; without a context, this machine.
func checkBefore(ctx context.Context, a *cli.App, clusters Clusters, o cli.Before, format string) error {
	if a.From.Node != "" || a.From.File != "" {
		return cli.UsageError("--pre asks no daemon, and takes no --node or --file")
	}
	if len(a.From.Contexts) > 0 {
		sites, err := clusters(ctx, a, o)
		if err != nil {
			return err
		}
		return checklist.Show(a, check.PreSites(sites), format)
	}
	if o.Image != "" || len(o.Set)+len(o.Values) > 0 {
		return cli.UsageError("--image, --set and --values are about clusters: name them with --context")
	}
	if a.Preflight == nil {
		return cli.UsageError("this program checks no machine: run strait check --pre on the node itself")
	}
	facts, err := a.Preflight(ctx)
	if err != nil {
		return cli.Exit(cli.ExitUnknown, err)
	}
	return checklist.Show(a, check.Pre([]api.NodeFacts{*facts}), format)
}

// Preflight runs straitd preflight, which is beside this program or in the PATH.
func Preflight(ctx context.Context) (*api.NodeFacts, error) {
	program, err := straitd()
	if err != nil {
		return nil, err
	}
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, program, "preflight")
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s preflight: %s", program, strings.TrimSpace(errs.String()+" "+err.Error()))
	}
	var facts api.NodeFacts
	if err := json.Unmarshal(out.Bytes(), &facts); err != nil || facts.Kind != api.KindNodeFacts {
		return nil, fmt.Errorf("%s preflight: the answer has another form; use the straitd of this version", program)
	}
	return &facts, nil
}

func straitd() (string, error) {
	if self, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(self), "straitd")
		if info, err := os.Stat(beside); err == nil && !info.IsDir() {
			return beside, nil
		}
	}
	path, err := exec.LookPath("straitd")
	if err != nil {
		return "", errors.New("there is no straitd beside this program or in the PATH; put it there: it is what asks the kernel")
	}
	return path, nil
}
