package daemon

import (
	"context"
	"fmt"
	"log/slog"

	"strait.io/strait/datapath/wireguard"
)

// RunTunnel serves a userspace WireGuard device until ctx is done or the device is deleted. Args
// are those that package wireguard passed to the process it started.
func RunTunnel(ctx context.Context, args []string, log *slog.Logger) error {
	a, err := wireguard.ParseTunnelArgs(args)
	if err != nil {
		return fmt.Errorf("tunnel: %w", err)
	}
	a.Log = log
	return wireguard.RunTunnel(ctx, a)
}

// CheckTunnel returns an error if the device that RunTunnel serves with the same arguments does not
// answer. The pods of strait-tunnel probe with it.
func CheckTunnel(args []string) error {
	a, err := wireguard.ParseTunnelArgs(args)
	if err == nil {
		_, err = wireguard.Peers(a.Device)
	}
	if err != nil {
		return fmt.Errorf("tunnel: %w", err)
	}
	return nil
}
