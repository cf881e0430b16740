package fleet

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"strait.io/strait/cli"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/daemon/api"
	"strait.io/strait/install/cluster"
)

// followed waits until all daemons have these pins.
func followed(ctx context.Context, a *cli.App, clusters []*cluster.Cluster, pins func(i int) authority.Pins) error {
	return until(ctx, "not every daemon has the pins", func() string { return lagging(ctx, clusters, pins) })
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
func signed(ctx context.Context, a *cli.App, clusters []*cluster.Cluster) error {
	return until(ctx, "not all is signed", func() string {
		return firstOf(ctx, clusters, func(l api.MemberList) []string { return l.Unsigned() })
	})
}

// firstOf returns what is found in the first list of members, of all daemons, in which anything is; "" if none does.
func firstOf(ctx context.Context, clusters []*cluster.Cluster, find func(api.MemberList) []string) string {
	for _, c := range clusters {
		lists, err := c.Members(ctx)
		if err != nil {
			return err.Error()
		}
		for node, l := range lists {
			if found := find(l); len(found) > 0 {
				return fmt.Sprintf("%s of context %s has %s", node, c.Context, cli.Some(found, 5))
			}
		}
	}
	return ""
}

// lagging names a daemon that has other pins; "" if none has.
func lagging(ctx context.Context, clusters []*cluster.Cluster, pins func(i int) authority.Pins) string {
	for i, c := range clusters {
		want := []string{}
		for id, p := range pins(i) {
			roots := make([]string, len(p.Roots))
			for j, r := range p.Roots {
				roots[j] = r.Fingerprint()
			}
			want = append(want, string(id)+" "+strings.Join(roots, " "))
		}
		slices.Sort(want)
		have, err := c.Pinned(ctx)
		if err != nil {
			return err.Error()
		}
		for node, got := range have {
			if slices.Sort(got); !slices.Equal(got, want) {
				return fmt.Sprintf("%s of context %s has %q, want %q", node, c.Context, got, want)
			}
		}
	}
	return ""
}
