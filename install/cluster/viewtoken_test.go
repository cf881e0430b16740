package cluster

import (
	"encoding/base64"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic/fake"
)

// TestMakeViewToken: the token is made once, is long, and is another one in each cluster.
func TestMakeViewToken(t *testing.T) {
	seen := map[string]bool{}
	for range 2 {
		c := &Cluster{Context: "c1", Namespace: "strait-system", objects: fake.NewSimpleDynamicClient(runtime.NewScheme())}
		token := func() string {
			t.Helper()
			o, err := c.objects.Resource(secrets).Namespace(c.Namespace).Get(t.Context(), View, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			text, _, _ := unstructured.NestedString(o.Object, "data", "token")
			token, err := base64.StdEncoding.DecodeString(text)
			if err != nil {
				t.Fatal(err)
			}
			return string(token)
		}
		changes, err := c.MakeViewToken(t.Context())
		if err != nil || len(changes) != 1 || changes[0] != (Change{Did: "created", Kind: "Secret", Name: "strait-system/strait-view"}) {
			t.Fatalf("%+v, %v", changes, err)
		}
		first := token()
		if changes, err = c.MakeViewToken(t.Context()); err != nil || len(changes) != 0 || token() != first {
			t.Errorf("again: %+v, %v; the token is the same: %v", changes, err, token() == first)
		}
		if len(first) < 43 || seen[first] {
			t.Errorf("a token of %d characters; seen before: %v", len(first), seen[first])
		}
		seen[first] = true
	}
}
