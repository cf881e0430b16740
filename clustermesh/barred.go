package clustermesh

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
)

// alwaysBarred namespaces never leave their cluster: their Services are the cluster's own machinery.
var alwaysBarred = []string{"kube-system", "kube-public", "kube-node-lease"}

// Barred are patterns, as of path.Match, of further namespaces that take no part in the clusterset: exports,
// global services and imports alike.
type Barred []string

// barredPattern is what there may be in a pattern: of path.Match what the names of namespaces need, so that it is said as a
// regular expression too. The chart, whose admission policy says it so, refuses what this does not match.
var barredPattern = regexp.MustCompile(`^([^][\\]|\[\^?([a-z0-9](-[a-z0-9])?)+\])+$`)

var (
	barredSet   = regexp.MustCompile(`\[[^]]*\]`)
	barredRange = regexp.MustCompile(`[a-z0-9]-[a-z0-9]`)
)

// Check returns an error that names the first pattern that is none.
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
		return errors.New("write a name, or a pattern such as team-*: it may have *, ?, and letters and digits in brackets, as [a-z] or [^a-z]")
	}
	for _, set := range barredSet.FindAllString(p, -1) {
		for _, r := range barredRange.FindAllString(set, -1) {
			if r[0] > r[2] { // path.Match takes it for a set of nothing, a regular expression for a mistake
				return fmt.Errorf("the range %s has nothing in it: write %c-%c", r, r[2], r[0])
			}
		}
	}
	return nil
}

// Why says for people why a service must not take part; empty where it may. default/kubernetes is every
// cluster's own API server. A pattern that is none bars nothing.
func (b Barred) Why(s ServiceName) string {
	if slices.Contains(alwaysBarred, s.Namespace) || s == (ServiceName{Namespace: "default", Name: "kubernetes"}) {
		return "Services of the cluster itself are barred"
	}
	for _, p := range b {
		if ok, _ := path.Match(p, s.Namespace); ok {
			return fmt.Sprintf("namespace %s is barred by the pattern %q of the configuration", s.Namespace, p)
		}
	}
	return ""
}
