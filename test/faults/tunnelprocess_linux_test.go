package faults

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"strait.io/strait/internal/problem"
	"strait.io/strait/internal/testutil"
)

// tunnelProcess returns the process that holds the device in userspace.
func (w *tunneled) tunnelProcess() (int, error) {
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		text, _ := os.ReadFile(file) // it may have ended
		if args := bytes.Split(text, []byte{0}); len(args) > 1 && string(args[1]) == "tunnel" && bytes.Contains(text, []byte(w.device())) {
			return strconv.Atoi(filepath.Base(filepath.Dir(file)))
		}
	}
	return 0, errors.Join(err, fmt.Errorf("no process holds %s", w.device()))
}

// The process of the userspace tunnel is stopped, or killed: there soon is a new one, or a Problem
// says that it does not answer.
func TestTunnelProcess(t *testing.T) {
	t.Parallel()
	w := newTunneled(t)
	if _, err := w.tunnelProcess(); err != nil {
		t.Skip(err) // the tunnel is in the kernel
	}
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGSTOP} {
		t.Run(sig.String(), func(t *testing.T) {
			pid, err := w.tunnelProcess()
			must(t, err)
			must(t, syscall.Kill(pid, sig))
			begin := time.Now()
			if sig == syscall.SIGSTOP {
				time.Sleep(time.Second) // until then, what is on its way may still answer
			}
			testutil.Eventually(t, healing, w.asWanted)
			t.Logf("as wanted after %v", time.Since(begin).Round(time.Millisecond))
		})
	}
}

// Another program puts a route into strait's table. strait leaves it alone and says so, until it is gone.
func TestForeignRoutes(t *testing.T) {
	t.Parallel()
	w := newTunneled(t)
	routes := []string{"10.66.0.0/16 dev lo", "10.9.2.0/25 dev lo", "default dev lo metric 7"}
	both := func(verb string) error {
		return each(routes, func(route string) error {
			_, err := w.run("ip route " + verb + " " + route + " table 5354")
			return err
		})
	}
	must(t, both("add"))
	testutil.Eventually(t, healing, func() error {
		s, err := w.life.status()
		if err != nil {
			return err
		}
		for _, p := range s.Problems {
			if p.Code == problem.RouteForeign && strings.Contains(p.Message, "10.66.0.0/16") && strings.Contains(p.Message, "10.9.2.0/25") && strings.Contains(p.Message, "0.0.0.0/0") {
				return nil
			}
		}
		return fmt.Errorf("problems: %v", s.Problems)
	})
	must(t, both("delete"))
	testutil.Eventually(t, healing, w.asWanted)
}

// Another program puts a rule before strait's. strait leaves it alone and says which way packets
// take, until it is gone.
func TestForeignRules(t *testing.T) {
	t.Parallel()
	w := newTunneled(t)
	for rule, way := range map[string]string{
		"to 10.9.2.0/24 blackhole priority 101": "invalid argument", "to 10.9.2.0/24 unreachable priority 101": "unreachable",
		"to 10.9.2.0/24 lookup 77 priority 101": "they go to lo",
	} {
		if strings.Contains(rule, "lookup") {
			_, err := w.run("ip route add 10.9.0.0/16 dev lo table 77")
			must(t, err)
		}
		_, err := w.run("ip rule add " + rule)
		must(t, err)
		testutil.Eventually(t, healing, func() error {
			s, err := w.life.status()
			if err != nil {
				return err
			}
			for _, p := range s.Problems {
				if p.Code == problem.RouteBypassed && strings.Contains(p.Message, "packets to 10.9.2.") && strings.Contains(p.Message, way) {
					return nil
				}
			}
			return fmt.Errorf("with %s: problems %v", rule, s.Problems)
		})
		_, err = w.run("ip rule delete " + rule)
		must(t, err)
		testutil.Eventually(t, healing, w.asWanted)
	}
}

// Amazon's VPC CNI has rules to and from each of its pods (512, 1536), and one for marked packets
// (1024). They come after strait's, so that the node's and pods' packets to other clusters do not
// leave by the pod's interface.
func TestRulesOfVPC(t *testing.T) {
	t.Parallel()
	w := newTunneled(t)
	for _, words := range []string{
		"ip route add blackhole default table 2", "ip rule add to 10.9.1.0/24 lookup main priority 512",
		"ip rule add fwmark 0x80/0x80 lookup main priority 1024", "ip rule add from 10.9.1.0/24 lookup 2 priority 1536",
	} {
		_, err := w.run(words)
		must(t, err)
	}
	var c net.Conn
	must(t, w.routedPod(t).Do(func() (err error) {
		c, err = net.DialTimeout("tcp", far, patience)
		return err
	}))
	defer c.Close()
	must(t, echo(c))
}
