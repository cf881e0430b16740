package cluster

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
)

func TestElsewhere(t *testing.T) {
	account := func(name, namespace string) rbacv1.Subject {
		return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: name, Namespace: namespace}
	}
	for _, tc := range []struct {
		name     string
		subjects []rbacv1.Subject
		want     string
	}{
		{"nobody", nil, ""},
		{"here", []rbacv1.Subject{account("strait", "here")}, ""},
		{"there", []rbacv1.Subject{account("strait", "there")}, "there"},
		{"both, by hand", []rbacv1.Subject{account("strait", "here"), account("strait", "there")}, ""},
		{"others", []rbacv1.Subject{account("other", "there"), {Kind: rbacv1.UserKind, Name: "strait"}}, ""},
	} {
		if got := elsewhere(&rbacv1.ClusterRoleBinding{Subjects: tc.subjects}, "here"); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}
