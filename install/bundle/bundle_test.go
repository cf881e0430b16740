package bundle_test

import (
	"bytes"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"strait.io/strait/install/bundle"
)

func key(seed byte) bundle.Key { return bundle.NewKey([32]byte{seed}) }

func member(id string, n int) bundle.Cluster {
	return bundle.Cluster{ID: id, UID: "uid-" + id,
		Nodes:    []netip.AddrPort{netip.MustParseAddrPort(fmt.Sprintf("10.0.%d.2:7946", n)), netip.MustParseAddrPort(fmt.Sprintf("10.0.%d.1:7946", n))},
		PodCIDRs: []netip.Prefix{netip.MustParsePrefix(fmt.Sprintf("10.%d.0.0/16", n))}}
}

func view(c bundle.Cluster, k byte, others ...bundle.Cluster) bundle.View {
	v := bundle.View{Context: "ctx-" + c.ID, Cluster: c}
	if k != 0 {
		v.Have = &bundle.Bundle{Version: 1, GossipKey: key(k), Clusters: append([]bundle.Cluster{c}, others...)}
	}
	return v
}

func TestMerge(t *testing.T) {
	a, b, c, d := member("a", 1), member("b", 2), member("c", 3), member("d", 4)
	overlap := member("o", 5)
	overlap.PodCIDRs = []netip.Prefix{netip.MustParsePrefix("10.1.128.0/17")}
	twin, copied := b, member("a", 6)
	twin.ID = "x"
	copied.UID = "uid-other"
	renamed := a
	renamed.ID = "z"
	for _, tc := range []struct {
		name    string
		views   []bundle.View
		key     byte // 9 is the fresh one
		ids     string
		message string
	}{
		{"no cluster has a key", []bundle.View{view(a, 0), view(b, 0)}, 9, "a b", ""},
		{"each has its own: the first context's", []bundle.View{view(b, 2), view(a, 1)}, 2, "a b", ""},
		{"one has none", []bundle.View{view(a, 0), view(b, 2)}, 2, "a b", ""},
		{"two share one already", []bundle.View{view(c, 3), view(a, 1, b), view(b, 1, a)}, 1, "a b c", ""},
		{"a member without a context is kept", []bundle.View{view(c, 3), view(a, 1, b)}, 1, "a b c", ""},
		{"again, nothing changes", []bundle.View{view(a, 1, b), view(b, 1, a)}, 1, "a b", ""},
		{"two sets, and a member would be left behind", []bundle.View{view(a, 1, b), view(c, 3, d)}, 0, "", "too: d"},
		{"two sets, all are named", []bundle.View{view(a, 1, b), view(c, 3, d), view(d, 3, c)}, 1, "a b c d", ""},
		{"duplicate id", []bundle.View{view(a, 1), view(copied, 2)}, 0, "", "both have the cluster id a"},
		{"one cluster twice", []bundle.View{view(b, 1), view(twin, 2)}, 0, "", "the same cluster"},
		{"overlap", []bundle.View{view(a, 1), view(overlap, 2)}, 0, "", "10.1.0.0/16 and 10.1.128.0/17"},
		{"overlap with a member without a context", []bundle.View{view(b, 1, a), view(overlap, 2)}, 0, "", "clusters a and o"},
		{"renamed: the former id goes", []bundle.View{view(renamed, 1, a, b), view(b, 1, a)}, 1, "b z", ""},
		{"renamed, in the set that gives up its key", []bundle.View{view(c, 3, d, b), view(renamed, 1, a)}, 3, "b c d z", ""},
		{"renamed, and no context shows it", []bundle.View{view(b, 1, a), view(c, 1, renamed)}, 0, "", "clusters a and z have the same UID uid-a"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := bundle.Merge(tc.views, key(9))
			if tc.message != "" {
				if err == nil || !strings.Contains(err.Error(), tc.message) {
					t.Fatalf("error %v, want %q", err, tc.message)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var ids []string
			for _, c := range got.Clusters {
				ids = append(ids, c.ID)
			}
			if got.GossipKey != key(tc.key) || strings.Join(ids, " ") != tc.ids {
				t.Errorf("key %s, clusters %v; want %s, %s", got.GossipKey.Fingerprint(), ids, key(tc.key).Fingerprint(), tc.ids)
			}
		})
	}
}

func TestEncode(t *testing.T) {
	b := bundle.Bundle{GossipKey: key(1), Clusters: []bundle.Cluster{member("b", 2), member("a", 1)}}
	back, err := bundle.Parse(b.Encode())
	if err != nil || !bytes.Equal(back.Encode(), b.Encode()) {
		t.Fatalf("%v\n%s", err, back.Encode())
	}
	if got := string(b.Seeds("a")); strings.Contains(got, "10.0.1.") || !strings.Contains(got, "10.0.2.1:7946\n10.0.2.2:7946\n") {
		t.Errorf("seeds of a:\n%s", got)
	}
}

// TestSecret: what prints a bundle does not print its key, nor does an error about one.
func TestSecret(t *testing.T) {
	k := strings.TrimRight(string(key(1)), "A=")
	b := bundle.Bundle{GossipKey: key(1)}
	for _, text := range []string{fmt.Sprint(b), fmt.Sprintf("%+v %#v %s %q", b, b, b.GossipKey, b.GossipKey)} {
		if strings.Contains(text, k) {
			t.Errorf("the key is in %q", text)
		}
	}
	for _, doc := range []string{`{"version":1,"gossipKey":"SECRET"}`, `{"version":1,"SECRET":1}`, `SECRET`, `{"version":"SECRET"}`, `{"version":1,"clusters":[{"nodes":["SECRET"]}]}`} {
		if _, err := bundle.Parse([]byte(doc)); err == nil || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%s: %v", doc, err)
		}
	}
}

func TestRefused(t *testing.T) {
	good := bundle.Bundle{GossipKey: key(1), Clusters: []bundle.Cluster{member("a", 1)}}
	for from, message := range map[string]string{
		`"version": 1`:         "version 2",
		`"id": "a"`:            "clusters[0].id",
		`"10.0.1.1:7946"`:      "address",
		`"nodes": [`:           "unknown field",
		string(good.GossipKey): "gossipKey",
	} {
		to := map[string]string{`"version": 1`: `"version": 2`, `"id": "a"`: `"id": "A.b"`, `"10.0.1.1:7946"`: `"10.0.1.1"`,
			`"nodes": [`: `"nodez": [`, string(good.GossipKey): "c2hvcnQ="}[from]
		doc := strings.Replace(string(good.Encode()), from, to, 1)
		if _, err := bundle.Parse([]byte(doc)); err == nil || !strings.Contains(err.Error(), message) {
			t.Errorf("%s → %s: %v, want %q", from, to, err, message)
		}
	}
}

// FuzzParse: what is read can be written and read again, as the same.
func FuzzParse(f *testing.F) {
	f.Add(bundle.Bundle{GossipKey: key(1), Clusters: []bundle.Cluster{member("a", 1), member("b", 2)}}.Encode())
	f.Add([]byte(`{"version":1,"gossipKey":"","clusters":null}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		b, err := bundle.Parse(data)
		if err != nil {
			return
		}
		again, err := bundle.Parse(b.Encode())
		if err != nil || !bytes.Equal(again.Encode(), b.Encode()) {
			t.Fatalf("%v\n%s\n%s", err, b.Encode(), again.Encode())
		}
		_ = b.Seeds("a")
	})
}

func TestDisconnect(t *testing.T) {
	a, b, c := member("a", 1), member("b", 2), member("c", 3)
	for _, tc := range []struct {
		name    string
		views   []bundle.View
		message string
		left    string
	}{
		{"of two", []bundle.View{view(a, 1, b)}, "", "a"},
		{"of three", []bundle.View{view(a, 1, b, c), view(c, 1, a, b)}, "", "a c, c a"},
		{"one forgot it before", []bundle.View{view(a, 1, c), view(c, 1, a, b)}, "", "a c, c a"},
		{"one was never joined", []bundle.View{view(c, 0), view(a, 1, b)}, "", "-, a"},
		{"another knows it too", []bundle.View{view(a, 1, b, c)}, "contexts as well: c", ""},
		{"itself", []bundle.View{view(a, 1, b), view(b, 1, a)}, "strait uninstall --context ctx-b", ""},
		{"a stranger", []bundle.View{view(a, 1, c), view(c, 1, a)}, "joined clusters are: a, c", ""},
	} {
		got, err := bundle.Disconnect(tc.views, "b")
		if (err == nil) != (tc.message == "") || err != nil && !strings.Contains(err.Error(), tc.message) {
			t.Errorf("%s: error %v, want %q", tc.name, err, tc.message)
		}
		var left []string
		for i, x := range got {
			if x == nil {
				left = append(left, "-")
				continue
			}
			var ids []string
			for _, m := range x.Clusters {
				ids = append(ids, m.ID)
			}
			left = append(left, strings.Join(ids, " "))
			if x.GossipKey != tc.views[i].Have.GossipKey || len(tc.views[i].Have.Clusters) < len(ids) {
				t.Errorf("%s: another key, or what was given is changed", tc.name)
			}
		}
		if s := strings.Join(left, ", "); s != tc.left {
			t.Errorf("%s: left are %q, want %q", tc.name, s, tc.left)
		}
	}
}
