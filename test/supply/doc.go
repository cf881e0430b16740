// Package supply holds the tests of how strait is built and released: whether two builds give the
// same bytes, what Helm, krew, minisign and a registry make of a release, what the bills of
// materials list, what generated files follow from, and what make vulncheck, make fuzz and
// kube-score say.
package supply
