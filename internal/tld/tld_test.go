package tld

import "testing"

func TestIs(t *testing.T) {
	for name, want := range map[string]bool{
		"com": true, "io": true, "dev": true, "zip": true, "COM": true, "xn--p1ai": true, "ck": true, "er": true, "uk": true, "shop": true,
		"default": false, "kube-system": false, "github": false, "svc": false, "internal": false, "local": false, "co.uk": false, "": false, ".": false,
	} {
		if Is(name) != want {
			t.Errorf("%q: %v", name, !want)
		}
	}
}
