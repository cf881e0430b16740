package daemon

import (
	"cmp"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/authority"
	"strait.io/strait/daemon/lend"
	"strait.io/strait/daemon/trustlevel"
	"strait.io/strait/daemon/turn"
	"strait.io/strait/daemon/watch"
	"strait.io/strait/internal/notify"
	"strait.io/strait/internal/problem"
)

// lentPause is how often the directory with the loan is read. The lender waits longer than that
// before it ends.
const lentPause = time.Second

// lent follows the loan of a pod of this node: the credentials with which the daemon can lead its cluster.
type lent struct {
	*watch.Source[lend.Loan]
	// token is the last that was lent. It stays after the loan: the Lease is given up with it.
	token atomic.Value
}

// borrow reads the directory once. See Run.
func borrow(dir string, changed notify.Signal) *lent {
	l := &lent{}
	l.token.Store("")
	l.Source = watch.New(watch.Config[lend.Loan]{
		Read: func() (lend.Loan, error) {
			loan, err := lend.Look(dir, time.Now())
			if loan.Token != "" {
				l.token.Store(loan.Token)
			}
			return loan, err
		},
		Every: lentPause,
		// Requests take a renewed token by themselves.
		Same:    func(a, b lend.Loan) bool { return (a.Token == "") == (b.Token == "") && a.Root == b.Root },
		Changed: changed,
	})
	return l
}

// bearer returns the token for requests to the API server; empty before the first loan.
func (l *lent) bearer() string { return l.token.Load().(string) }

// mayLead reports whether this node may lead its cluster now.
func (d *Daemon) mayLead() bool {
	if _, lent, _ := d.kube.loan(); !lent {
		return d.config.Authority.leads()
	}
	return d.leading.may
}

// leading is whether this node may lead its cluster, and with which root. It is owned by the loop.
type leading struct {
	may        bool
	root       *authority.PrivateKey
	leaderless turn.Leaderless
	// published is when publishMember last went through all nodes.
	published time.Time
}

// followLoan puts the loan in force: the root, and with it the right to be elected. It
// returns what is wrong with the loan.
func (d *Daemon) followLoan() []clustermesh.Problem {
	loan, lent, err := d.kube.loan()
	if !lent {
		return nil
	}
	var root *authority.PrivateKey
	var rootErr error
	if d.config.Authority.on() && len(d.files.pins.Get()) > 0 {
		root, rootErr = trustlevel.LentRoot(loan.Root, d.files.pins.Get()[d.who.Cluster].Roots)
	}
	if s := &d.leading; (root == nil) != (s.root == nil) || root != nil && *root != *s.root {
		d.log.Info("the root that is lent to this node changed", "from", loan.From, "has", root != nil)
		s.root = root
		d.gossip.Reroot(root)
	}
	// Without pins there is no root key to lend yet; the leader makes both.
	may := loan.Token != "" && (root != nil || !d.config.Authority.on() || d.trust.all && len(d.files.pins.Get()) == 0)
	if may != d.leading.may {
		d.leading.may = may
		d.log.Info("the credentials to lead changed", "from", loan.From, "has", may)
	}
	d.kube.setMayLead(may)
	return lentProblems(cmp.Or(err, rootErr))
}

func lentProblems(err error) []clustermesh.Problem {
	if err == nil {
		return nil
	}
	return []clustermesh.Problem{{
		Code: problem.LoanUnusable, Object: "leader's credentials", Field: "source.kubernetes.leaderDir", Warning: true,
		Message: strings.ReplaceAll(err.Error(), "\n", ", ") + "; so this node does not lead",
		Try:     "compare the root in the Secret strait-authority with strait clusterset pins; look at the logs of the pods of strait-leader",
	}}
}

// leaderless reports that no daemon of this cluster can lead.
func (d *Daemon) leaderless(s clustermesh.State, now time.Time) []clustermesh.Problem {
	_, lent, _ := d.kube.loan()
	can := !lent || d.leading.may || turn.CanLead(d.who.Cluster, s)
	since, again := d.leading.leaderless.Note(can, now)
	if again > 0 {
		d.againIn(again)
	}
	if since.IsZero() {
		return nil
	}
	return []clustermesh.Problem{problem.Object("Deployment", d.kube.ownNamespace(), "strait-leader").Problem(clustermesh.Problem{
		Code: problem.NobodyLeads,
		Message: fmt.Sprintf("none of its pods has lent a daemon the credentials to lead the cluster since %s: exports and imports stay as they were",
			since.UTC().Format(time.TimeOnly+"Z")),
		Try: "look at its pods: kubectl -n " + d.kube.ownNamespace() + " get pods -l app.kubernetes.io/component=leader",
	})}
}
