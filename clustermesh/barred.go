package clustermesh

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
)

// alwaysBarred lists the namespaces that never take part in the clusterset: their Services are the
// cluster's own machinery.
var alwaysBarred = []string{"kube-system", "kube-public", "kube-node-lease"}

// Barred lists patterns, in the syntax of path.Match, of further namespaces that take no part in
// the clusterset: their Services are neither exported nor imported nor global.
type Barred []string

// barredPattern matches the supported patterns: the part of the path.Match syntax that namespace
// names need and that translates into a regular expression. The chart translates patterns for its
// admission policy, and refuses those that this does not match.
var barredPattern = regexp.MustCompile(`^([^][\\]|\[\^?([a-z0-9](-[a-z0-9])?)+\])+$`)

var (
	barredSet   = regexp.MustCompile(`\[[^]]*\]`)
	barredRange = regexp.MustCompile(`[a-z0-9]-[a-z0-9]`)
)

// Check returns an error that names the first invalid pattern.
func (b Barred) Check() error {
	for _, p := range b {
		if err := checkPattern(p); err != nil {
			return fmt.Errorf("namespace pattern %q: %w", p, err)
		}
	}
	return nil
}

func checkPattern(p string) error {
	if !barredPattern.MatchString(p) {
		return errors.New("write a name, or a pattern such as team-*: it may have *, ?, and letters and digits in brackets, such as [a-z] or [^a-z]")
	}
	for _, set := range barredSet.FindAllString(p, -1) {
		for _, r := range barredRange.FindAllString(set, -1) {
			if r[0] > r[2] { // an empty set to path.Match, an error in a regular expression
				return fmt.Errorf("the range %s is empty: write %c-%c", r, r[2], r[0])
			}
		}
	}
	return nil
}

// Why returns why a service must not take part; empty if it may. default/kubernetes is every
// cluster's own API server. An invalid pattern matches nothing.
func (b Barred) Why(s ServiceName) string {
	if slices.Contains(alwaysBarred, s.Namespace) || s == (ServiceName{Namespace: "default", Name: "kubernetes"}) {
		return "Services of the cluster itself are barred"
	}
	for _, p := range b {
		if ok, _ := path.Match(p, s.Namespace); ok {
			return fmt.Sprintf("namespace %s is barred by the pattern %q in the configuration", s.Namespace, p)
		}
	}
	return ""
}
