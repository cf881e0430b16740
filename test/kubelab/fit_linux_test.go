package kubelab

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"strait.io/strait/internal/testutil"
)

const fitEnv = "STRAIT_TEST_FIT"

// A user namespace has a limit of inotify instances of its own: lowered there, no other program feels it.
func TestTooFewInotifyInstances(t *testing.T) {
	if os.Getenv(fitEnv) != "" {
		fitInside(t)
		return
	}
	testutil.NeedRoot(t)
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), fitEnv+"=1")
	ids := []syscall.SysProcIDMap{{Size: 1}}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, UidMappings: ids, GidMappings: ids}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("inside: %v\n%s", err, out)
	}
}

func fitInside(t *testing.T) {
	if err := os.WriteFile("/proc/sys/user/max_inotify_instances", []byte("9"), 0); err != nil {
		t.Fatal(err)
	}
	for range 2 { // what it takes it gives back
		if err := inotify(9); err != nil {
			t.Error(err)
		}
	}
	err := inotify(10)
	if !errors.Is(err, ErrUnfit) || !strings.Contains(err.Error(), "10 inotify instances and 9 are left") ||
		!strings.Contains(err.Error(), "sysctl -w fs.inotify.max_user_instances=") {
		t.Errorf("with one too few: %v", err)
	}
}
