package kernel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"strait.io/strait/cli"
	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/client"
	"strait.io/strait/datapath/socklb/inspect"
	"strait.io/strait/internal/l4"
)

// otherPins explains why a daemon's names are not those of the maps being read: several nodes can run
// on one machine and have the same frontends.
const otherPins = "straitd at %s has its pins at %s"

// pinned is a directory of pins, with the services that the daemon knows if it answers.
type pinned struct {
	dir string
	// services are the daemon's; unknown is the reason if they cannot be used.
	services []api.Service
	unknown  error
	names    map[l4.Addr]string
}

// addPinsFlag gives a command and those below it the flag --pins.
func addPinsFlag(cmd *cobra.Command, pins *string) {
	cmd.PersistentFlags().StringVar(pins, "pins", "", "pin `directory` (env STRAIT_PINS; "+
		"default: straitd's or "+inspect.DefaultPins+")")
	_ = cmd.MarkPersistentFlagDirname("pins")
}

// findPins decides which pins are meant, and asks the daemon for the names of what they hold. If
// the daemon does not answer, that is no error: these commands are meant for such times.
func (a *maps) findPins(ctx context.Context, flag string) pinned {
	p := pinned{dir: cmp.Or(flag, a.Getenv("STRAIT_PINS"))}
	ctx, cancel := context.WithTimeout(ctx, cli.CompletionTimeout)
	defer cancel()
	status, err := cli.AskHere(ctx, a.App, (*client.Client).Status)
	if err == nil && p.dir == "" {
		p.dir = status.Datapath.Pins
	}
	p.dir = absolute(cmp.Or(p.dir, inspect.DefaultPins))
	if err == nil && !sameDir(status.Datapath.Pins, p.dir) {
		err = fmt.Errorf(otherPins, a.Socket, status.Datapath.Pins)
	}
	var list *api.ServiceList
	if err == nil {
		list, err = cli.AskHere(ctx, a.App, (*client.Client).Services)
	}
	if p.unknown = err; err != nil {
		return p
	}
	p.services, p.names = list.Items, map[l4.Addr]string{}
	for _, s := range p.services {
		for _, f := range s.Frontends {
			p.names[f.Addr] = s.Name
		}
	}
	return p
}

// absolute returns the full path of a directory, which is what answers show: the command that undoes
// an opt-out must work in any directory. If the current directory is gone, the path stays as it is.
func absolute(dir string) string {
	if full, err := filepath.Abs(dir); err == nil {
		return full
	}
	return filepath.Clean(dir)
}

// whyUnknown returns in one line why there are no names; empty if there are.
func (p pinned) whyUnknown() string {
	var failure *api.Failure
	switch {
	case p.unknown == nil:
		return ""
	case errors.As(p.unknown, &failure):
		return cli.Clean(failure.Message)
	}
	return cli.Clean(p.unknown.Error())
}

// pinsError explains why pins cannot be read or changed. The exit code is 3, since what they hold
// is unknown.
func pinsError(dir string, err error) error {
	if known, ok := errors.AsType[*api.Failure](err); ok {
		return cli.Exit(cli.ExitUnknown, known)
	}
	f := &api.Failure{Reason: api.NoAnswer, Cause: err, Message: strings.ReplaceAll(err.Error(), "\n", "; ")}
	switch {
	case errors.Is(err, fs.ErrPermission):
		f.Reason = api.Denied
		f.Message = fmt.Sprintf("not allowed to open the maps pinned at %s: only root can", dir)
		f.Try = "run the same command as root (sudo)"
	case errors.Is(err, fs.ErrNotExist):
		f.Message = fmt.Sprintf("this version of strait has no maps pinned at %s: straitd has not run here, or its pins are elsewhere", dir)
		f.Try = "start straitd, or name its pins (bpf.pins) with --pins DIRECTORY or STRAIT_PINS"
	}
	return cli.Exit(cli.ExitUnknown, f)
}
