package kube

import (
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
)

// TestNodeOf: only a token of strait's own account, for this audience and bound to a pod, names a node.
func TestNodeOf(t *testing.T) {
	good := func() authenticationv1.TokenReviewStatus {
		return authenticationv1.TokenReviewStatus{
			Authenticated: true, Audiences: []string{SignerAudience},
			User: authenticationv1.UserInfo{
				Username: "system:serviceaccount:strait-system:strait",
				Extra:    map[string]authenticationv1.ExtraValue{nodeNameKey: {"n1"}},
			},
		}
	}
	if n, err := nodeOf(good(), "strait-system"); err != nil || n != "n1" {
		t.Errorf("got %q, %v", n, err)
	}
	for says, spoil := range map[string]func(*authenticationv1.TokenReviewStatus){
		"does not accept": func(s *authenticationv1.TokenReviewStatus) { s.Authenticated = false },
		"does not accept the token: expired": func(s *authenticationv1.TokenReviewStatus) {
			s.Audiences, s.Error = nil, "expired"
		},
		"not of system:serviceaccount:strait-system:strait": func(s *authenticationv1.TokenReviewStatus) {
			s.User.Username = "system:serviceaccount:default:strait"
		},
		"Kubernetes 1.30": func(s *authenticationv1.TokenReviewStatus) { s.User.Extra = nil },
	} {
		s := good()
		spoil(&s)
		if n, err := nodeOf(s, "strait-system"); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %q, %v", says, n, err)
		}
	}
}
