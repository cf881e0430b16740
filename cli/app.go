// Package cli is what the commands of strait have in common: the streams and flags of one run, exit
// codes, how tables, JSON and YAML are printed, and one request to the daemon on this node.
//
// Inputs are flags and the daemon's answers (package daemon/api); outputs are text and errors with
// an exit code. It must not know any command, nor how answers are computed.
package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/client"
)

// answerTimeout bounds one request to the daemon, which answers from memory in milliseconds.
const answerTimeout = 5 * time.Second

// App is one run of the program: what commands see of the outside world, and the global flags.
// Tests replace it to run commands in process.
type App struct {
	Args       []string // without the program's name
	Stdin      io.Reader
	Stdout     io.Writer
	Stderr     io.Writer
	Getenv     func(string) string
	Now        func() time.Time
	IsTerminal bool // of stdout
	// Version and Revision are what the linker set; if empty, the Go toolchain's stamps are used.
	Version, Revision string
	// Socket is that of the daemon.
	Socket string
	// From is whom queries ask.
	From From
	// Reach opens the way to the daemons of a cluster. Its error is ErrNoContext if the kubeconfig
	// has no context to use. Nil reaches no cluster.
	Reach func(context.Context, Place) (*client.Client, error)
	// ContextNames returns the contexts of a kubeconfig, for completion; nil offers none.
	ContextNames func(kubeconfig string) []string
	// Preflight finds out what this machine has of what straitd needs; nil cannot.
	Preflight func(context.Context) (*api.NodeFacts, error)
	// Program is the name by which this program was called.
	Program string
	// Output is the format: see CheckOutput.
	Output  string
	NoColor bool
	ASCII   bool
}

// Begin prints an answer as data, and is done, if -o asks for that. Otherwise it prints the header
// of a table, and returns the printer for what follows.
func (a *App) Begin(answer any, from api.Viewpoint) (p Printer, done bool, err error) {
	if done, err = a.Data(answer); done {
		return p, done, err
	}
	p = a.Printer()
	a.Header(p, from, "")
	return p, false, nil
}

// Hint prints a line to stderr: stdout holds results only.
func (a *App) Hint(format string, args ...any) {
	fmt.Fprintf(a.Stderr, format+"\n", args...)
}

// Before is with what strait would be installed in clusters that are checked before.
type Before struct {
	Image       string
	Set, Values []string
}
