package netfilter

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/nftables"
	"golang.org/x/sys/unix"

	"strait.io/strait/internal/notify"
)

// Watch signals on changed when the table is no longer what the last Reconcile wanted: another
// program flushed all rules, or changed those of strait. It also signals once when it starts to
// listen, so that no earlier change is missed. It blocks until ctx is done, and then returns nil.
// On a kernel without nf_tables it never signals.
func (t *Table) Watch(ctx context.Context, changed notify.Signal) error {
	for ctx.Err() == nil {
		err := t.listen(ctx, changed)
		switch {
		case errors.Is(err, errors.ErrUnsupported):
			<-ctx.Done()
		case errors.Is(err, unix.ENOBUFS): // messages were lost: listen again, which signals first
		case err != nil && ctx.Err() == nil:
			return fmt.Errorf("listen to nf_tables: %w", err)
		}
	}
	return nil
}

// listen checks the table after every nf_tables transaction of any program. That is cheaper than
// decoding what changed, which with kube-proxy's rules is thousands of messages.
func (t *Table) listen(ctx context.Context, changed notify.Signal) error {
	var conn nftables.Conn
	// Decode only changes of tables; the end of a transaction is reported in any case.
	monitor := nftables.NewMonitor(nftables.WithMonitorObject(nftables.MonitorObjectTables))
	events, err := conn.AddGenerationalMonitor(monitor)
	if err != nil {
		return unsupported(err)
	}
	stop := context.AfterFunc(ctx, func() { _ = monitor.Close() })
	defer func() {
		if stop() {
			_ = monitor.Close() // the events ended already, so its error does not matter
		}
	}()
	changed.Poke()
	for ev := range events { // closed after Close or an error, so the sender never blocks
		if err := ev.GeneratedBy.Error; err != nil {
			return err
		}
		if !t.whole() {
			t.log.Debug("another program changed the nft table", "table", tableName)
			changed.Poke()
		}
	}
	return nil
}

// whole reports whether the table is as wanted.
func (t *Table) whole() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.wanted == nil {
		return true
	}
	have, err := installed()
	return err == nil && have != nil && have.equal(*t.wanted)
}
