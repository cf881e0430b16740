package authority

import (
	"net/netip"
	"reflect"
	"strings"
	"testing"
)

func aMember() Member {
	return Member{Pin: Pin{Cluster: "east", Roots: []PublicKey{east.Public()}, Pods: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}, Namespaces: []string{"*"}},
		Seeds: []string{"192.0.2.1:7946", "[2001:db8::1]:7946", "nodes.east.example:7946"}}
}

// TestMember: what a cluster tells of itself reads as it was written, is one flat document, and a
// mistake is named with its field.
func TestMember(t *testing.T) {
	text := string(aMember().Encode())
	got, err := ParseMember([]byte(text))
	if err != nil || !reflect.DeepEqual(got, aMember()) {
		t.Errorf("%+v, %v", got, err)
	}
	if !strings.HasPrefix(text, "cluster: east\n") || !strings.Contains(text, "\nseeds:\n- 192.0.2.1:7946\n") {
		t.Errorf("it is\n%s", text)
	}
	for _, c := range []struct{ from, to, want string }{
		{"10.1.0.0/16", "10.1.2.3/16", "pods[0]: 10.1.2.3/16 has host bits set"},
		{"cluster: east", "cluster: ea/st", "cluster: "},
		{"cluster: east", "claster: east", "unknown field"},
		{"192.0.2.1:7946", "192.0.2.1", `seeds[0]: "192.0.2.1": want HOST:PORT`},
		{"192.0.2.1:7946", "192.0.2.1:0", "seeds[0]"},
		{"192.0.2.1:7946", ":7946", "seeds[0]"},
		{"- 192.0.2.1:7946\n", strings.Repeat("- 192.0.2.1:7946\n", MaxSeeds), "seeds: has 22 addresses"},
	} {
		broken := strings.Replace(text, c.from, c.to, 1)
		if _, err := ParseMember([]byte(broken)); broken == text || err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.to, err, c.want)
		}
	}
}

// FuzzMember: whatever is in the file, a member that is read pins one cluster, and reads as it is
// written.
func FuzzMember(f *testing.F) {
	f.Add(aMember().Encode())
	f.Add([]byte("cluster: a\nroots: []\nseeds: ['a:b']\n"))
	f.Add([]byte("cluster: a\n---\ncluster: b\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := ParseMember(text)
		if err != nil {
			return
		}
		again, err := ParseMember(m.Encode())
		if err != nil || again.Cluster != m.Cluster || len(again.Seeds) != len(m.Seeds) {
			t.Fatalf("%+v, then %+v, %v", m, again, err)
		}
		if _, err := ParsePins(Pins{m.Cluster: m.Pin}.Encode()); err != nil {
			t.Fatalf("%+v can be read, and not pinned: %v", m, err)
		}
	})
}
