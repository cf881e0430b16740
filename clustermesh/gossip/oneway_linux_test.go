package gossip

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"strait.io/strait/internal/testutil"
)

// TestOneWay: machines that can dial and cannot be dialled, as behind a NAT, get what others write,
// and others what they write: one whose name is lower than those of the others, and one whose name
// is higher.
func TestOneWay(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("nft"); err != nil {
		testutil.Missing(t, "needs nft, of the package nftables")
	}
	if os.Getenv(envInside) == "" {
		inOwnNetwork(t)
		return
	}
	run(t, "ip", "link", "set", "lo", "up")
	run(t, "ip", "link", "add", "sw0", "type", "bridge")
	run(t, "ip", "link", "set", "sw0", "up")
	const seed = "10.9.0.1:7946"
	all := []*machine{boot(t, 0, origin("east", "n1"), seed), boot(t, 1, origin("east", "n2"), seed)}
	for i, cluster := range []string{"behind", "west"} {
		m := boot(t, 2+i, origin(cluster, "n1"), "")
		kill(t, m.daemon)
		pid := fmt.Sprint(m.holder.Process.Pid)
		for _, rule := range []string{
			"add table inet door", "add chain inet door in { type filter hook input priority 0; }",
			"add rule inet door in tcp dport 7946 tcp flags syn / syn,ack drop",
		} {
			run(t, "nsenter", "-t", pid, "-n", "nft", rule)
		}
		m.run(t, seed)
		all = append(all, m)
	}
	for _, m := range all[:2] { // those behind a door do not reach each other
		eventually(t, m.origin.String()+" hears all", func() bool { return m.hears(all, "alive") && m.now().Records == len(all) })
	}
	for _, m := range all[2:] {
		took := eventually(t, m.origin.String()+" has all records", func() bool { return m.hears(all[:2], "alive") && m.now().Records == len(all) })
		t.Logf("%s has all records %s after the others", m.origin, took)
	}
	none(t, all)
}
