package node

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"strait.io/strait/cli"
	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/client"
)

// pollInterval is how often --wait asks again.
const pollInterval = 250 * time.Millisecond

// look is what --wait sees when it asks once.
type look struct {
	// waiting is what is not well yet; empty if all is.
	waiting string
	// show prints what was seen; nil if there was no answer at all, and err is why.
	show func() error
	err  error
}

// oneLook asks one daemon.
func oneLook(ctx context.Context, a *cli.App) look {
	status, err := cli.Ask(ctx, a, (*client.Client).Status)
	if err != nil {
		waiting, _ := cli.Explained(err)
		return look{waiting: waiting, err: err}
	}
	return look{waiting: strings.Join(obstacles(*status), "; "), show: func() error { return showStatus(a, status) }}
}

// everyLook asks all nodes of the clusters that the flags choose.
func everyLook(ctx context.Context, a *cli.App) look {
	all := askEvery(ctx, a)
	var waiting []string
	for _, s := range all {
		switch {
		case s.Status == nil:
			waiting = append(waiting, s.name()+": "+s.why())
		case len(obstacles(*s.Status)) > 0:
			waiting = append(waiting, s.name()+": "+strings.Join(obstacles(*s.Status), "; "))
		}
	}
	return look{waiting: cli.Some(waiting, cli.MostNamed), show: func() error { return showEvery(a, all) }}
}

// waitUntilWell asks until all is well and prints what it saw last. On stderr it prints what it is
// waiting for, whenever that changes. A failure that waiting cannot fix ends it at once.
func waitUntilWell(ctx context.Context, a *cli.App, limit time.Duration, ask func(context.Context, *cli.App) look) error {
	started := a.Now()
	timeUp := time.NewTimer(limit)
	defer timeUp.Stop()
	shown := ""
	for {
		l := ask(ctx, a)
		var failure *api.Failure
		if l.err != nil && (!errors.As(l.err, &failure) || failure.Reason == api.Denied || failure.Reason == api.NotStrait) {
			return l.err
		}
		if l.waiting == "" {
			return l.show()
		}
		if l.waiting != shown {
			a.Hint("waiting (%s): %s", api.Age(a.Now().Sub(started)), cli.Clean(l.waiting))
			shown = l.waiting
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for straitd: %w", ctx.Err())
		case <-timeUp.C:
			return waitOver(a, limit, l)
		case <-time.After(min(pollInterval, limit)):
		}
	}
}

// waitOver ends a wait that ran out: it prints what was seen last, if anything was, and returns
// exitWaitOver in place of the exit code of that.
func waitOver(a *cli.App, limit time.Duration, l look) error {
	if l.err != nil {
		return cli.Exit(cli.ExitWaitOver, l.err)
	}
	var exit *cli.ExitError
	if err := l.show(); !errors.As(err, &exit) {
		return err
	}
	a.Hint("--wait=%s ran out", limit)
	return cli.Exit(cli.ExitWaitOver, nil)
}
