package masquerade

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/nftables"
	"golang.org/x/sys/unix"

	"strait.io/strait/internal/notify"
)

// Watch signals on changed when what the last Reconcile put is not there any more: another program flushed
// all rules, or changed strait's. It signals once when it starts to listen, so that nothing is missed
// before. It blocks until ctx is done, and then returns nil; a kernel without nf_tables signals nothing.
func (e *Exemption) Watch(ctx context.Context, changed notify.Signal) error {
	for ctx.Err() == nil {
		err := e.listen(ctx, changed)
		switch {
		case errors.Is(err, errors.ErrUnsupported):
			<-ctx.Done()
		case errors.Is(err, unix.ENOBUFS): // messages were lost: listen anew, which looks first
		case err != nil && ctx.Err() == nil:
			return fmt.Errorf("listen to nf_tables: %w", err)
		}
	}
	return nil
}

// listen looks at the table after every transaction of anybody's. That costs less than to decode what was
// changed, which with kube-proxy's rules is thousands of messages.
func (e *Exemption) listen(ctx context.Context, changed notify.Signal) error {
	var conn nftables.Conn
	// Of what changed, only tables are decoded; that a transaction ended is told in any case.
	monitor := nftables.NewMonitor(nftables.WithMonitorObject(nftables.MonitorObjectTables))
	events, err := conn.AddGenerationalMonitor(monitor)
	if err != nil {
		return unsupported(err)
	}
	stop := context.AfterFunc(ctx, func() { _ = monitor.Close() })
	defer func() {
		if stop() {
			_ = monitor.Close() // it ended by itself: nothing is lost
		}
	}()
	changed.Poke()
	for ev := range events { // closed after Close or an error, so none is left that would block the sender
		if err := ev.GeneratedBy.Error; err != nil {
			return err
		}
		if !e.whole() {
			e.log.Debug("the nft table was changed by somebody else", "table", tableName)
			changed.Poke()
		}
	}
	return nil
}

// whole reports that nothing is missing of what is wanted.
func (e *Exemption) whole() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.wanted == nil {
		return true
	}
	have, err := held()
	return err == nil && have != nil && have.equal(*e.wanted)
}
