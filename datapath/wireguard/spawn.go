package wireguard

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// answerOK is what a tunnel process writes to its ready descriptor once it serves its socket.
const answerOK = "ok"

// readyFD is the number of the ready descriptor in the tunnel process: the first after stdio.
const readyFD = 3

// start runs the tunnel command, and waits until the process serves its socket or reports why it
// cannot. The process has its own session and shares only the ready pipe with us, so that it
// survives our death, even by SIGKILL.
func (d *Device) start(ctx context.Context) error {
	ready, child, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("make a pipe: %w", err)
	}
	defer ready.Close()
	cmd, err := d.command(child)
	if err == nil {
		err = cmd.Start()
		if f, ok := cmd.Stdout.(*os.File); ok {
			f.Close()
		}
	}
	child.Close() // so that the pipe closes when the process exits
	if err != nil {
		return fmt.Errorf("start WireGuard process of device %s: %w", d.cfg.Device, err)
	}
	d.child = cmd.Process.Pid
	answer, err := await(ctx, ready)
	if err != nil || answer != answerOK {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		d.child = 0
		switch {
		case err != nil:
		case answer == "":
			err = errors.New("it exited without a message; check TunnelCommand")
		default:
			err = errors.New(answer)
		}
		return fmt.Errorf("start WireGuard process of device %s (%s): %w", d.cfg.Device, strings.Join(cmd.Args, " "), err)
	}
	d.cfg.Log.Info("started WireGuard process", "device", d.cfg.Device, "pid", d.child)
	return cmd.Process.Release()
}

func (d *Device) command(ready *os.File) (*exec.Cmd, error) {
	name := d.cfg.TunnelCommand[0]
	if strings.Contains(name, "/") {
		abs, err := filepath.Abs(name)
		if err != nil {
			return nil, err
		}
		name = abs
	}
	args := TunnelArgs{Device: d.cfg.Device, MTU: d.cfg.MTU, ReadyFD: readyFD}.Flags()
	cmd := exec.Command(name, append(d.cfg.TunnelCommand[1:len(d.cfg.TunnelCommand):len(d.cfg.TunnelCommand)], args...)...)
	cmd.Dir = "/" // keeps no mount busy
	cmd.ExtraFiles = []*os.File{ready}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if d.cfg.TunnelLog != "" {
		// This must be a file: a pipe to us would kill the process with SIGPIPE once we have
		// exited.
		f, err := os.OpenFile(d.cfg.TunnelLog, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, err
		}
		cmd.Stdout, cmd.Stderr = f, f
	}
	return cmd, nil
}

// await returns the process's message, which ends when the process closes the pipe or exits. It
// gives up when ctx is done.
func await(ctx context.Context, ready *os.File) (string, error) {
	stop := context.AfterFunc(ctx, func() { _ = ready.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	text, err := io.ReadAll(io.LimitReader(ready, 4096))
	if ctx.Err() != nil {
		return "", fmt.Errorf("it was not ready in time: %w", context.Cause(ctx))
	}
	return strings.TrimSpace(string(text)), err
}

// reap reaps our tunnel process if it exited, so that it does not stay a zombie.
func (d *Device) reap() {
	if d.child == 0 {
		return
	}
	pid, err := unix.Wait4(d.child, nil, unix.WNOHANG, nil)
	if pid == d.child || errors.Is(err, unix.ECHILD) {
		d.child = 0
	}
}
