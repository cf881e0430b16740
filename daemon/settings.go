package daemon

import (
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"strait.io/strait/daemon/trustlevel"
	"strait.io/strait/internal/enum"
)

// MeshMode is whether there is a mesh. The zero value is MeshWireGuard.
type MeshMode string

// The modes of the mesh.
const (
	MeshWireGuard MeshMode = "wireguard"
	// MeshOff: pods of other clusters are routable without strait.
	MeshOff MeshMode = "off"
)

// UnmarshalText accepts the names of the modes.
func (m *MeshMode) UnmarshalText(b []byte) error { return enum.Decode(m, b, MeshWireGuard, MeshOff) }

// AuthorityMode is whether keys and pins decide which records are trusted. The zero value is AuthorityOn.
type AuthorityMode string

// The modes.
const (
	AuthorityOn AuthorityMode = "on"
	// AuthorityOff: every holder of the gossip key is trusted, on purpose.
	AuthorityOff AuthorityMode = "off"
)

// UnmarshalText accepts the names of the modes.
func (m *AuthorityMode) UnmarshalText(b []byte) error {
	return enum.Decode(m, b, AuthorityOn, AuthorityOff)
}

// TrustLevel is which clusters a machine with pins trusts.
type TrustLevel = trustlevel.Level

// TunnelOwner is what starts the process of a userspace device. The zero value is TunnelOwn.
type TunnelOwner string

// The owners of the tunnel's process.
const (
	// TunnelOwn: the daemon starts it.
	TunnelOwn TunnelOwner = "own"
	// TunnelExternal: something else does, whose processes outlive the daemon's, such as a
	// DaemonSet of its own.
	TunnelExternal TunnelOwner = "external"
)

// UnmarshalText accepts the names of the owners.
func (o *TunnelOwner) UnmarshalText(b []byte) error {
	return enum.Decode(o, b, TunnelOwn, TunnelExternal)
}

// AddrOrOff is where something is, or that it is not wanted. The zero value is the default address.
type AddrOrOff struct {
	// Off: it is not wanted, and Addr is invalid.
	Off  bool
	Addr netip.AddrPort
}

// UnmarshalText accepts an address and port, or "off".
func (a *AddrOrOff) UnmarshalText(b []byte) error {
	*a = AddrOrOff{Off: string(b) == "off"}
	if a.Off {
		return nil
	}
	if err := a.Addr.UnmarshalText(b); err != nil {
		return fmt.Errorf("%q is neither off nor an address and port, as in 127.0.0.1:9964", b)
	}
	return nil
}

// MarshalText is the inverse of UnmarshalText.
func (a AddrOrOff) MarshalText() ([]byte, error) {
	if a.Off {
		return []byte("off"), nil
	}
	return a.Addr.MarshalText()
}

// Duration is a time.Duration whose errors give an example.
type Duration struct{ time.Duration }

// UnmarshalText accepts what time.ParseDuration does.
func (d *Duration) UnmarshalText(b []byte) (err error) {
	if d.Duration, err = time.ParseDuration(string(b)); err != nil {
		return fmt.Errorf("%q is not a time with a unit, as in 10s or 500ms", b)
	}
	return nil
}

// MarshalText is the inverse of UnmarshalText.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// LogLevel is a slog.Level whose errors list the levels. The zero value is info.
type LogLevel struct{ slog.Level }

// UnmarshalText accepts what slog.Level does, and the empty string for info.
func (l *LogLevel) UnmarshalText(b []byte) error {
	if len(b) == 0 {
		l.Level = slog.LevelInfo
		return nil
	}
	if err := l.Level.UnmarshalText(b); err != nil {
		return fmt.Errorf("%q is none of debug, info, warn, error", b)
	}
	return nil
}

// LogFormat is how a line of the log is written. The zero value is LogText.
type LogFormat string

// The formats of the log.
const (
	LogText LogFormat = "text"
	LogJSON LogFormat = "json"
)

// UnmarshalText accepts the names of the formats.
func (f *LogFormat) UnmarshalText(b []byte) error { return enum.Decode(f, b, LogText, LogJSON) }
