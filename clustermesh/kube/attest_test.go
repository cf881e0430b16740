package kube

import (
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestNodeOfToken: a real API server message where a token is used that is bound to a pod. One for another
// audience, or one that is bound to nothing, proves nothing.
func TestNodeOfToken(t *testing.T) {
	b := newBench(t)
	ctx, core := t.Context(), b.core.CoreV1()
	_, err := core.Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: string(b.node)}}, metav1.CreateOptions{})
	must(t, err)
	for _, name := range []string{Account, "foreign"} {
		_, err = core.ServiceAccounts(b.ns).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		must(t, err)
	}
	token := func(account, pod string, audience ...string) string {
		t.Helper()
		r := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: audience}}
		if pod != "" {
			made, err := core.Pods(b.ns).Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: pod}, Spec: corev1.PodSpec{
				NodeName: string(b.node), ServiceAccountName: account, Containers: []corev1.Container{{Name: "c", Image: "none"}},
			}}, metav1.CreateOptions{})
			must(t, err)
			r.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod, UID: made.UID}
		}
		made, err := core.ServiceAccounts(b.ns).CreateToken(ctx, account, r, metav1.CreateOptions{})
		must(t, err)
		return made.Status.Token
	}
	if n, err := b.direct.NodeOf(ctx, token(Account, "daemon", SignerAudience), b.ns); err != nil || n != b.node {
		t.Errorf("got %q, %v; want %s", n, err, b.node)
	}
	for what, bad := range map[string]struct{ token, message string }{
		"none":                {"", "has no token"},
		"garbage":             {"garbage", "does not accept"},
		"of another audience": {token(Account, "other"), "does not accept"},
		"of another account":  {token("foreign", "foreign", SignerAudience), "not of system:serviceaccount:" + b.ns + ":strait"},
		"bound to nothing":    {token(Account, "", SignerAudience), "on which node"},
	} {
		if n, err := b.direct.NodeOf(ctx, bad.token, b.ns); err == nil || !strings.Contains(err.Error(), bad.message) {
			t.Errorf("a token %s: got %q, %v; want %q", what, n, err, bad.message)
		}
	}
	must(t, core.Pods(b.ns).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}, metav1.ListOptions{}))
}

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
	for message, spoil := range map[string]func(*authenticationv1.TokenReviewStatus){
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
		if n, err := nodeOf(s, "strait-system"); err == nil || !strings.Contains(err.Error(), message) {
			t.Errorf("%s: got %q, %v", message, n, err)
		}
	}
}
