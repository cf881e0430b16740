//go:build !linux

package server

import (
	"net"
	"os"
)

// straitd runs on Linux only. Elsewhere, tests of the CLI run a server, one per directory.

func listenerPID(*net.UnixConn) int32 { return 0 }

func tryLock(*os.File) error { return nil }
