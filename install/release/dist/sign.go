package main

import (
	"fmt"
	"os"

	"aead.dev/minisign"
)

// readKey reads a key that minisign made.
func readKey(file, password string) (key minisign.PrivateKey, err error) {
	encoded, err := os.ReadFile(file)
	if err != nil {
		return key, fmt.Errorf("RELEASE_KEY: %w", err)
	}
	if minisign.IsEncrypted(encoded) {
		if password == "" {
			return key, fmt.Errorf("RELEASE_KEY: %s has a password: put it into the variable RELEASE_KEY_PASSWORD", file)
		}
		key, err = minisign.DecryptKey(password, encoded)
	} else {
		err = key.UnmarshalText(encoded)
	}
	if err != nil {
		return key, fmt.Errorf("RELEASE_KEY: read %s: %w; minisign -G makes a key", file, err)
	}
	return key, nil
}

// sign returns the signature of text, with a comment that the signature covers.
func sign(text []byte, key minisign.PrivateKey, comment string) []byte {
	return minisign.SignWithComments(key, text, comment, fmt.Sprintf("signature from minisign secret key %016X", key.ID()))
}
