// Package tld tells top-level domains of the public DNS from other names.
//
// Input is a name; output is whether the ICANN's part of the public suffix list has it as a top-level
// domain, as of the version of golang.org/x/net in go.mod. Pure.
package tld

import (
	"strings"

	"golang.org/x/net/publicsuffix"
)

// Is reports whether a name is a public top-level domain, such as com, io or xn--p1ai. A Service in a
// namespace of that name answers for names outside: pods look for github.com as
// github.com.svc.cluster.local first, by their search path.
func Is(name string) bool {
	if name == "" || strings.Contains(name, ".") {
		return false
	}
	_, icann := publicsuffix.PublicSuffix("any." + strings.ToLower(name))
	return icann
}
