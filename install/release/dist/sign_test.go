package main

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aead.dev/minisign"
)

// TestSign: keys with and without a password sign; one whose password is missing says so.
func TestSign(t *testing.T) {
	public, private, err := minisign.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := private.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	locked, err := minisign.EncryptKey("secret", private)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name           string
		key            []byte
		password, want string
	}{
		{"without a password", plain, "", ""},
		{"with a password", locked, "secret", ""},
		{"a missing password", locked, "", "has a password: put it into the variable RELEASE_KEY_PASSWORD"},
		{"no key", []byte("x"), "", "minisign -G makes a key"},
	} {
		file := filepath.Join(t.TempDir(), "key")
		if err := os.WriteFile(file, c.key, 0o600); err != nil {
			t.Fatal(err)
		}
		key, err := readKey(file, c.password)
		if c.want != "" {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %q", c.name, err, c.want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if s := sign([]byte("sums"), key, "of v1"); !minisign.Verify(public, []byte("sums"), s) || !strings.Contains(string(s), "trusted comment: of v1\n") {
			t.Errorf("%s: the signature is\n%s", c.name, s)
		}
	}
}
