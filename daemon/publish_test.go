package daemon

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAdvertised(t *testing.T) {
	dir := t.TempDir()
	node := "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nstatus: {addresses: [{type: InternalIP, address: 192.0.2.7}]}\n"
	if err := os.WriteFile(filepath.Join(dir, "n1.yaml"), []byte(node), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ name, bind, advertise, node, want, wantErr string }{
		{"as configured", "0.0.0.0:7946", "198.51.100.1:1", "n1", "198.51.100.1:1", ""},
		{"where it binds", "192.0.2.9:7946", "", "n1", "192.0.2.9:7946", ""},
		{"a wildcard takes the Node's address", "0.0.0.0:7946", "", "n1", "192.0.2.7:7946", ""},
		{"a wildcard without a Node", "[::]:7946", "", "n2", "", "gossip.advertise"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := Config{Node: tc.node, Source: SourceConfig{Manifest: dir}, Gossip: GossipConfig{Bind: addrPort(tc.bind), Advertise: addrPort(tc.advertise)}}
			got, err := advertised(c)
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Errorf("error %v, want %q in it", err, tc.wantErr)
				}
				return
			}
			if err != nil || got.String() != tc.want {
				t.Errorf("got %v, %v; want %s", got, err, tc.want)
			}
		})
	}
}
