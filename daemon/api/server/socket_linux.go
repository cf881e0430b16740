package server

import (
	"net"
	"os"
	"syscall"
)

// listenerPID returns the process that listens at the other end, by SO_PEERCRED. It is 0 if that is
// in a PID namespace that this process cannot see.
func listenerPID(conn *net.UnixConn) (pid int32) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) {
		if cred, err := syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED); err == nil {
			pid = cred.Pid
		}
	})
	return pid
}

// tryLock locks a directory until it is closed; it fails at once if another process has the lock.
func tryLock(d *os.File) error {
	return syscall.Flock(int(d.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}
