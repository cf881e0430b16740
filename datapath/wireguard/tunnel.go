package wireguard

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"golang.zx2c4.com/wireguard/conn"
	"golang.zx2c4.com/wireguard/device"
	"golang.zx2c4.com/wireguard/ipc"
)

// DefaultMemoryLimit is the soft memory limit of the tunnel process's Go runtime, in bytes. Without
// it, an active device grows to about 200 MB of packet buffers.
const DefaultMemoryLimit = 96 << 20

// TunnelArgs are the arguments of a tunnel process.
type TunnelArgs struct {
	// Device is the name of the TUN and of its socket.
	Device string
	// MTU is in bytes; 0 keeps that of an existing TUN, unless it is the kernel's default of 1500,
	// and is 1420 for a new one.
	MTU int
	// MemoryLimit is in bytes; 0 means DefaultMemoryLimit, and a negative value sets none.
	MemoryLimit int64
	// ReadyFD is a descriptor to write "ok" or the error to, and then close; 0 means none. The process
	// ends if nothing reads it any more before it is ready.
	ReadyFD int
	// Log receives errors, and at debug level what WireGuard does; nil discards them.
	Log *slog.Logger
}

// Flags returns the arguments as ParseTunnelArgs reads them, without Log.
func (a TunnelArgs) Flags() []string {
	flags := []string{"--device=" + a.Device}
	add := func(name string, v int64) {
		if v != 0 {
			flags = append(flags, "--"+name+"="+strconv.FormatInt(v, 10))
		}
	}
	add("mtu", int64(a.MTU))
	add("memory-limit", a.MemoryLimit)
	add("ready-fd", int64(a.ReadyFD))
	return flags
}

// ParseTunnelArgs reads the arguments that Open appends to Config.TunnelCommand.
func ParseTunnelArgs(args []string) (TunnelArgs, error) {
	var a TunnelArgs
	fs := flag.NewFlagSet("tunnel", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.StringVar(&a.Device, "device", "", "name of the TUN device")
	fs.IntVar(&a.MTU, "mtu", 0, "MTU in bytes")
	fs.Int64Var(&a.MemoryLimit, "memory-limit", 0, "soft memory limit in bytes")
	fs.IntVar(&a.ReadyFD, "ready-fd", 0, "descriptor to report readiness on")
	if err := fs.Parse(args); err != nil {
		return a, err
	}
	if fs.NArg() > 0 {
		return a, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	return a, checkName(a.Device)
}

// RunTunnel serves a userspace WireGuard device: a TUN in the network namespace of this process,
// with wireguard-go behind it. Other processes configure it through /var/run/wireguard/DEVICE.sock.
// RunTunnel creates the TUN, or attaches the one that a killed predecessor left. It blocks until
// ctx is done, which leaves the TUN with its address and routes, or until the TUN is deleted.
func RunTunnel(ctx context.Context, args TunnelArgs) error {
	if args.Log == nil {
		args.Log = slog.New(slog.DiscardHandler)
	}
	announce := announcer(args.ReadyFD)
	err := runTunnel(ctx, args, announce)
	if err != nil {
		announce(err.Error())
	}
	return err
}

// announcer returns a function that writes to the descriptor and closes it. Only the first call has
// an effect.
func announcer(fd int) func(string) {
	var once sync.Once
	return func(text string) {
		once.Do(func() {
			if fd == 0 {
				return
			}
			f := os.NewFile(uintptr(fd), "ready")
			_, _ = io.WriteString(f, text+"\n")
			_ = f.Close()
		})
	}
}

// errStarterGone ends a process that is not ready yet when the daemon that started it dies. Without a
// socket, neither the next daemon nor a cleanup could find it.
var errStarterGone = errors.New("the daemon that started this process is gone")

// starterGone reports whether no process reads the descriptor any more.
func starterGone(fd int) bool {
	if fd == 0 {
		return false
	}
	polled := []unix.PollFd{{Fd: int32(fd)}}
	n, err := unix.Poll(polled, 0)
	return err == nil && n > 0 && polled[0].Revents&unix.POLLERR != 0
}

func runTunnel(ctx context.Context, args TunnelArgs, announce func(string)) error {
	if err := checkName(args.Device); err != nil {
		return err
	}
	switch {
	case args.MemoryLimit == 0:
		debug.SetMemoryLimit(DefaultMemoryLimit)
	case args.MemoryLimit > 0:
		debug.SetMemoryLimit(args.MemoryLimit)
	}
	tun, err := attachTUN(ctx, args)
	if err != nil {
		return err
	}
	dev := device.NewDevice(tun, conn.NewDefaultBind(), logger(args.Log, args.Device))
	defer dev.Close()
	if starterGone(args.ReadyFD) {
		return errStarterGone
	}
	listener, err := listen(args.Device)
	if err != nil {
		return err
	}

	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	served := make(chan error, 1)
	wg.Go(func() { served <- serve(ctx, args, listener, dev) })
	announce(answerOK)
	select {
	case <-ctx.Done():
		args.Log.Info("stopping; the device stays", "device", args.Device)
	case <-dev.Wait():
		args.Log.Info("the device was deleted", "device", args.Device)
	case err = <-served:
	}
	return err
}

func listen(name string) (net.Listener, error) {
	f, err := ipc.UAPIOpen(name)
	if err != nil {
		return nil, fmt.Errorf("open socket %s: %w", socketPath(name), err)
	}
	defer f.Close() // UAPIListen duplicates it
	l, err := ipc.UAPIListen(name, f)
	if err != nil {
		return nil, fmt.Errorf("listen on socket %s: %w", socketPath(name), err)
	}
	return l, nil
}

// serve answers requests until ctx is done. If the socket is deleted it opens a new one: packets
// keep flowing, and a daemon that could not find this process would try in vain to attach its TUN.
func serve(ctx context.Context, args TunnelArgs, l net.Listener, dev *device.Device) error {
	for {
		stop := context.AfterFunc(ctx, func() { _ = l.Close() })
		err := accept(l, dev)
		if !stop() {
			return nil
		}
		_ = l.Close()
		args.Log.Warn("the control socket was closed, reopening it", "device", args.Device, "err", err)
		for {
			if l, err = listen(args.Device); err == nil {
				break
			}
			args.Log.Error("cannot open the control socket", "device", args.Device, "err", err)
			if sleep(ctx, time.Second) != nil {
				return nil
			}
		}
	}
}

func accept(l net.Listener, dev *device.Device) error {
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go dev.IpcHandle(c) // ends with the client's connection
	}
}

func logger(log *slog.Logger, name string) *device.Logger {
	log = log.With("device", name)
	l := &device.Logger{
		Verbosef: device.DiscardLogf,
		Errorf:   func(format string, args ...any) { log.Error(fmt.Sprintf(format, args...)) },
	}
	if log.Enabled(context.Background(), slog.LevelDebug) {
		l.Verbosef = func(format string, args ...any) { log.Debug(fmt.Sprintf(format, args...)) }
	}
	return l
}
