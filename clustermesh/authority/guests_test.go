package authority

import (
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/key"
)

func laptop() Guest {
	return Guest{Name: "laptop", PublicKey: key.Public{1}, Range: []netip.Prefix{netip.MustParsePrefix("10.99.0.2/32")}}
}

func TestGuestsRoundTrip(t *testing.T) {
	build := Guest{Name: "build", PublicKey: key.Public{2}, Range: []netip.Prefix{netip.MustParsePrefix("fd00:99::/64")},
		Nodes: []clustermesh.NodeName{"n1"}, To: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16")},
		Endpoint: netip.MustParseAddrPort("192.0.2.1:51820")}
	text := EncodeGuests([]Guest{laptop(), build})
	got, err := ParseGuests(text)
	if err != nil || !reflect.DeepEqual(got, []Guest{build, laptop()}) {
		t.Errorf("got %+v, %v from\n%s", got, err, text)
	}
	if again := EncodeGuests([]Guest{build, laptop()}); string(again) != string(text) {
		t.Errorf("the order of the input shows:\n%s\n%s", text, again)
	}
	for _, empty := range []string{"", "peers: []\n", string(EncodeGuests(nil))} {
		if got, err := ParseGuests([]byte(empty)); err != nil || len(got) > 0 {
			t.Errorf("%q: %v, %v", empty, got, err)
		}
	}
}

func TestGuestMistakes(t *testing.T) {
	for text, mistake := range map[string]string{
		"peers: [":          "read peers",
		"peers: [{nam: x}]": "unknown field",
		"peers: [{name: A b, range: [0.0.0.0/0]}]": "peers[0].name",
		"peers: [{name: a}]":                       "peers[0].publicKey: is missing",
		"peers: [{name: a, publicKey: AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=}]":                                     "peers[0].range: is missing",
		"peers: [{name: a, publicKey: AQ==}]":                                                                             "not a WireGuard key",
		"peers: [{name: a, publicKey: AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=, range: [10.99.0.2/24]}]":              "did you mean 10.99.0.0/24?",
		"peers: [{name: a, publicKey: AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=, range: [0.0.0.0/0]}]":                 "peers[0].range[0]",
		"peers: [{name: a, publicKey: AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=, range: [10.9.0.2/32], nodes: [a/b]}]": "peers[0].nodes[0]",
		string(EncodeGuests([]Guest{laptop(), laptop()})):                                                                 "laptop is there twice",
	} {
		if got, err := ParseGuests([]byte(text)); err == nil || !strings.Contains(err.Error(), mistake) {
			t.Errorf("%s: %v, %v, want an error with %q", text, got, err, mistake)
		}
	}
}

// FuzzParseGuests: what is accepted has no mistakes, and stays the same when it is written again.
func FuzzParseGuests(f *testing.F) {
	f.Add(EncodeGuests([]Guest{laptop()}))
	f.Add([]byte("peers: [{name: a, range: [::/0]}]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		gs, err := ParseGuests(text)
		if err != nil {
			return
		}
		for _, g := range gs {
			if errs := g.mistakes(); len(errs) > 0 {
				t.Fatalf("accepted %+v: %v", g, errs)
			}
		}
		again, err := ParseGuests(EncodeGuests(gs))
		if err != nil || len(again) != len(gs) {
			t.Fatalf("%+v becomes %+v, %v", gs, again, err)
		}
	})
}
