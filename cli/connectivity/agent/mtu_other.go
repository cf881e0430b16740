//go:build !linux

package agent

import (
	"context"
	"errors"
	"net/netip"
)

// pathMTU needs an option of Linux. Pods run on Linux.
func pathMTU(context.Context, netip.AddrPort) (int, error) {
	return 0, errors.New("only Linux can ask for packets that are not divided")
}
