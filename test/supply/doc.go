// Package supply holds the tests of how strait is built: whether two builds give the same bytes,
// what the bills of materials list, and what make vulncheck and make fuzz say.
package supply
