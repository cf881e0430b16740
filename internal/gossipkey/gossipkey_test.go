package gossipkey_test

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"strait.io/strait/internal/gossipkey"
)

func key(b byte) gossipkey.Key { return gossipkey.Key(bytes.Repeat([]byte{b}, gossipkey.Size)) }

func TestParse(t *testing.T) {
	a, b := key(1), key(2)
	for text, want := range map[string]gossipkey.Ring{
		a.Base64():                                   {a},
		"\n " + a.Base64() + "\r\n\n":                {a},
		a.Base64() + "\n" + b.Base64():               {a, b},
		b.Base64() + "\n" + b.Base64() + "\n":        {b},
		"":                                           nil,
		"c2hvcnQ=":                                   nil,
		a.Base64() + b.Base64():                      nil,
		strings.Repeat(a.Base64()+"\n", 3):           nil,
		a.Base64() + "\nnot a key\n":                 nil,
		base64Lines(a, b, key(3)):                    nil,
		a.Base64()[:20] + "\n" + a.Base64()[20:]:     nil,
		strings.Repeat("A", 43) + "=\n" + "A=\n":     nil,
		strings.Replace(a.Base64(), "AQ", "A-", 1):   nil,
		"# the key of the clusterset\n" + a.Base64(): nil,
	} {
		got, err := gossipkey.Parse(text)
		if !slices.Equal(got, want) || (err == nil) != (want != nil) {
			t.Errorf("%q: %d keys, %v", text, len(got), err)
		}
		if err != nil && len(text) > 4 && strings.Contains(err.Error(), text) {
			t.Errorf("%q: the error has the text: %v", text, err)
		}
	}
}

func base64Lines(keys ...gossipkey.Key) string { return gossipkey.Ring(keys).Text() }

func TestKeysAreNotPrinted(t *testing.T) {
	k := key(7)
	for _, verb := range []string{"%v", "%s", "%+v", "%#v"} {
		if got := fmt.Sprintf(verb, gossipkey.Ring{k}); strings.Contains(got, k.Base64()) || strings.Contains(got, "7") {
			t.Errorf("%s prints %s", verb, got)
		}
	}
}

// TestToward: at each step, a daemon that has made it and one that has not understand each other. The
// way ends with the next key alone.
func TestToward(t *testing.T) {
	a, b := key(1), key(2)
	r := gossipkey.Ring{a}
	var way []gossipkey.Ring
	for range 4 {
		next := r.Toward(b)
		if !slices.Contains(next, r[0]) || !slices.Contains(r, next[0]) {
			t.Errorf("between steps %d and %d, one does not accept what the other sends", len(way), len(way)+1)
		}
		r = next
		way = append(way, r)
	}
	if want := []gossipkey.Ring{{a, b}, {b, a}, {b}, {b}}; !reflect.DeepEqual(way, want) {
		t.Errorf("the way is %d rings, not the wanted ones", len(way))
	}
}

func TestLagging(t *testing.T) {
	a, b := key(1), key(2)
	got := gossipkey.Ring{a, b}.Lagging(map[string][]string{
		"n1": {a.Fingerprint(), b.Fingerprint()},
		"n4": {a.Fingerprint()}, "n3": {b.Fingerprint(), a.Fingerprint()}, "n2": nil,
	})
	if want := []string{"n2", "n3", "n4"}; !slices.Equal(got, want) {
		t.Errorf("lagging: %v, want %v", got, want)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(base64Lines(key(1)))
	f.Add(base64Lines(key(1), key(2)))
	f.Fuzz(func(t *testing.T, text string) {
		r, err := gossipkey.Parse(text)
		if err != nil {
			return
		}
		again, err := gossipkey.Parse(r.Text())
		if err != nil || !slices.Equal(again, r) || len(r) < 1 || len(r) > 2 {
			t.Errorf("%q: %d keys, again %d, %v", text, len(r), len(again), err)
		}
	})
}
