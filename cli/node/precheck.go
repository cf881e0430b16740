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
	"strait.io/strait/daemon/api"
)

// checkBefore checks this machine before straitd runs on it.
func checkBefore(ctx context.Context, a *cli.App, format string) error {
	if len(a.From.Contexts) > 0 || a.From.Node != "" || a.From.File != "" {
		return cli.UsageError("--pre checks the machine on which it runs, and takes no --context, --node or --file")
	}
	if a.Preflight == nil {
		return cli.UsageError("this program checks no machine: run strait check --pre on the node itself")
	}
	facts, err := a.Preflight(ctx)
	if err != nil {
		return cli.Exit(cli.ExitUnknown, err)
	}
	return showChecks(a, check.Pre([]api.NodeFacts{*facts}), format)
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
