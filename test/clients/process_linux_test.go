package clients

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"strait.io/strait/internal/l4"
	"strait.io/strait/internal/testutil"
)

// Packages of Python, which are no commands, so needs looks for these folders.
const (
	grpcPackage      = "/usr/lib/python3/dist-packages/grpc python3-grpcio"
	websocketPackage = "/usr/lib/python3/dist-packages/websockets python3-websockets"
	ftpPackage       = "/usr/lib/python3/dist-packages/pyftpdlib python3-pyftpdlib"
)

// stopWithin is how long a program may take to end after SIGTERM.
const stopWithin = 5 * time.Second

// TestMain completes PATH, because some shells of root lack sbin. test/setup.sh unpacks what Debian would install
// only in exchange for another package.
func TestMain(m *testing.M) {
	path := os.Getenv("PATH") + ":/usr/sbin:/sbin"
	if cache, err := os.UserCacheDir(); err == nil {
		path += ":" + filepath.Join(cache, "strait/unpacked/usr/sbin")
	}
	if err := os.Setenv("PATH", path); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// needs is need for a row: a program or an absolute path, and its package.
func needs(t *testing.T, row string) {
	t.Helper()
	file, pkg, _ := strings.Cut(row, " ")
	if !filepath.IsAbs(file) {
		need(t, file, pkg)
		return
	}
	if _, err := os.Stat(file); err != nil {
		testutil.Missing(t, fmt.Sprintf("needs %s: apt install %s, or run `make setup` as root", file, pkg))
	}
}

// script runs a shell script until the test ends, in a backend or in the client's pod.
func (w *world) script(inPod bool, text string) {
	w.t.Helper()
	c := exec.Command("/bin/sh", "-euc", text)
	c.Env = append([]string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "HOME=" + w.dir}, w.env...)
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	// The group has also what the program started, for the case that it has to be killed.
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	ns := w.servers
	if inPod {
		ns = w.clients
		c.SysProcAttr.UseCgroupFD, c.SysProcAttr.CgroupFD = true, int(w.cgroup.Fd())
	}
	must(w.t, ns.Do(c.Start))
	w.t.Cleanup(func() {
		_ = c.Process.Signal(syscall.SIGTERM) // it may have ended
		kill := time.AfterFunc(stopWithin, func() { _ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) })
		_ = c.Wait() // ended by a signal: always an error
		kill.Stop()
		if w.t.Failed() {
			w.t.Logf("%s\n%s", text, &out)
		}
	})
}

// bound waits until a socket of the namespace listens on a port, without a connection that the program would see.
func (w *world) bound(ns *testutil.Namespace, proto l4.Proto, port uint16) {
	w.t.Helper()
	kind, state := "tcp", "0A" // listening
	if proto == l4.UDP {
		kind, state = "udp", "07" // not connected
	}
	testutil.Eventually(w.t, 20*time.Second, func() error {
		return ns.Do(func() error {
			for _, file := range []string{kind, kind + "6"} {
				text, err := os.ReadFile("/proc/thread-self/net/" + file)
				if err != nil {
					return err
				}
				for line := range strings.Lines(string(text)) {
					f := strings.Fields(line)
					if len(f) > 3 && strings.HasSuffix(f[1], fmt.Sprintf(":%04X", port)) && f[3] == state {
						return nil
					}
				}
			}
			return fmt.Errorf("nothing listens on %s port %d", kind, port)
		})
	})
}

func (w *world) testdata() string {
	w.t.Helper()
	path, err := filepath.Abs("testdata")
	must(w.t, err)
	return path
}

// serveLog writes what arrives over UDP and TCP to the file log.
func (w *world) serveLog(at netip.AddrPort) {
	w.t.Helper()
	file, err := os.OpenFile(filepath.Join(w.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	must(w.t, err)
	w.t.Cleanup(func() { file.Close() })
	var l net.Listener
	var p net.PacketConn
	must(w.t, w.servers.Do(func() (err error) {
		if p, err = net.ListenPacket("udp", at.String()); err != nil {
			return err
		}
		l, err = net.Listen("tcp", at.String())
		return err
	}))
	w.serveLines(l, func(line string) string {
		fmt.Fprint(file, line) // a lost line shows in the client
		return ""
	})
	done := make(chan struct{})
	go func() {
		defer close(done)
		b := make([]byte, 2048)
		for {
			n, _, err := p.ReadFrom(b)
			if err != nil {
				return
			}
			fmt.Fprintf(file, "%s\n", b[:n])
		}
	}()
	w.t.Cleanup(func() {
		p.Close()
		<-done
	})
}

// serveLines answers each line of each connection until the test ends.
func (w *world) serveLines(l net.Listener, answer func(line string) string) {
	done := make(chan struct{})
	serve := func(c net.Conn) {
		defer c.Close()
		must := c.SetDeadline(time.Now().Add(clientWithin))
		for r := bufio.NewReader(c); must == nil; {
			line, err := r.ReadString('\n')
			if line != "" {
				_, _ = c.Write([]byte(answer(line))) // a lost answer shows in the client
			}
			if err != nil {
				return
			}
		}
	}
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err == nil {
				go serve(c)
			}
		}
	}()
	w.t.Cleanup(func() {
		l.Close()
		<-done
	})
}
