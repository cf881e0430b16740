package scale

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"strait.io/strait/internal/gossipkey"
)

// metricsListen is where straitd answers probes and Prometheus.
const metricsListen = "127.0.0.1:9964"

// daemon is the real straitd, on the first node.
type daemon struct {
	job
	config, pins string
	cmd          *exec.Cmd
}

type tree = map[string]any

// device is the tunnels'. The socket of its process is in a folder of the machine, where another node may
// have strait0; who ends the process leaves the socket.
const (
	device = "strait-bench0"
	socket = "/var/run/wireguard/" + device + ".sock"
)

// newDaemon writes straitd's configuration. All of straitd's files are in the job's folder.
func newDaemon(j job, keys gossipkey.Ring) (*daemon, error) {
	bpffs := filepath.Join(j.Dir, "bpf")
	d := &daemon{job: j, config: filepath.Join(j.Dir, "strait.yaml"), pins: filepath.Join(bpffs, "strait")}
	if err := errors.Join(os.MkdirAll(bpffs, 0o755), unix.Mount("bpffs", bpffs, "bpf", 0, "")); err != nil {
		return nil, fmt.Errorf("mount bpffs: %w", err)
	}
	keyFile := filepath.Join(j.Dir, "gossip.key")
	if err := os.WriteFile(keyFile, []byte(keys.Text()), 0o600); err != nil {
		return nil, err
	}
	text, err := json.Marshal(tree{ // JSON is valid YAML
		"cluster": "c1", "node": nodeName(0),
		"source":   tree{"kubernetes": tree{"kubeconfig": j.Kubeconfig}},
		"stateDir": filepath.Join(j.Dir, "state"), "runDir": filepath.Join(j.Dir, "run"),
		"bpf":     tree{"pins": d.pins, "cgroup": filepath.Join(j.Cgroup, "straitd"), "allowVirtualRoot": true},
		"gossip":  tree{"bind": gossipOf(0).String(), "keyFile": keyFile, "seeds": []string{gossipOf(j.Endpoints + 1).String()}},
		"mesh":    tree{"mode": "wireguard", "implementation": "userspace", "device": device},
		"metrics": tree{"listen": metricsListen},
	})
	if err != nil {
		return nil, err
	}
	return d, os.WriteFile(d.config, text, 0o600)
}

// start starts straitd. Its log is in the job's folder.
func (d *daemon) start() error {
	log, err := os.OpenFile(filepath.Join(d.Dir, "straitd.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cg, err := os.Open(filepath.Join(d.Cgroup, "straitd"))
	if err != nil {
		return err
	}
	defer cg.Close()
	d.cmd = exec.Command(d.Straitd, "--config", d.config)
	d.cmd.Stdout, d.cmd.Stderr = log, log
	d.cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(cg.Fd())}
	return d.cmd.Start()
}

// clean stops straitd and removes what it left in the kernel, and its state.
func (d *daemon) clean() error {
	if err := d.stop(); err != nil {
		return err
	}
	if out, err := exec.Command(d.Straitd, "cleanup", "--state", "--config", d.config).CombinedOutput(); err != nil {
		return fmt.Errorf("straitd cleanup: %w: %s", err, out)
	}
	return nil
}

func (d *daemon) stop() error {
	if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop straitd: %w; %s", err, d.lastWords())
	}
	if err := d.cmd.Wait(); err != nil {
		return fmt.Errorf("straitd: %w; %s", err, d.lastWords())
	}
	return nil
}

// lastWords returns the end of straitd's log.
func (d *daemon) lastWords() string {
	b, _ := os.ReadFile(filepath.Join(d.Dir, "straitd.log"))
	return "its log ends with:\n" + string(b[max(0, len(b)-2000):])
}

// memory returns a field of straitd's /proc status, in MB (10^6 bytes): VmRSS, or VmHWM, its peak.
func (d *daemon) memory(field string) (float64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", d.cmd.Process.Pid))
	if err != nil {
		return 0, fmt.Errorf("read memory of straitd: %w; %s", err, d.lastWords())
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == field+":" {
			kb, err := strconv.ParseFloat(f[1], 64)
			return kb * 1024 / 1e6, err
		}
	}
	return 0, fmt.Errorf("read memory of straitd: /proc has no line %s", field)
}
