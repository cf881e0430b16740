package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"strait.io/strait/cli"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/daemon/api"
	"strait.io/strait/install/vault"
)

// followed waits until all daemons have these pins.
func followed(ctx context.Context, vaults []vault.Vault, pins func(i int) authority.Pins) error {
	return until(ctx, "not every daemon has the pins", func() string { return vault.Lagging(ctx, vaults, pins) })
}

// until waits until nothing lags any more.
func until(ctx context.Context, what string, lag func() string) error {
	for {
		behind := lag()
		if behind == "" {
			return nil
		}
		select {
		case <-ctx.Done():
			return waitOver(fmt.Errorf("%s: %s: %w", what, behind, context.Cause(ctx)))
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// signed waits until every daemon holds only signed records of those that are there: what is not signed
// goes where pins are turned on.
func signed(ctx context.Context, vaults []vault.Vault) error {
	return until(ctx, "not all is signed", func() string {
		return vault.FirstOf(ctx, vaults, func(l api.MemberList) []string { return l.Unsigned() })
	})
}

// resumable adds to the end of a wait that the same command continues.
func resumable(err error) error {
	var over *cli.ExitError
	if errors.As(err, &over) && over.Code == cli.ExitWaitOver {
		return cli.Exit(cli.ExitWaitOver, fmt.Errorf("%w; run the same command again to continue", err))
	}
	return asUsage(err)
}
