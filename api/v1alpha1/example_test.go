package v1alpha1_test

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"strait.io/strait/api/client/fake"
	"strait.io/strait/api/v1alpha1"
)

// A program shares a namespace with all clusters, and later asks what came of it. In place of the
// fake, which is for tests, it has client.NewForConfig of strait.io/strait/api/client, with the
// configuration that client-go reads.
func Example() {
	ctx := context.Background()
	policies := fake.NewSimpleClientset().StraitV1alpha1().ServicePolicies()

	_, err := policies.Create(ctx, &v1alpha1.ServicePolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "shop"},
		Spec: v1alpha1.ServicePolicySpec{
			From:   []string{"*"},
			To:     []string{"*"},
			Select: []v1alpha1.ServiceTerm{{Namespaces: []string{"shop"}}},
			As:     v1alpha1.Mirror,
		},
	}, metav1.CreateOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}

	// In a cluster, its leader does this.
	shop, _ := policies.Get(ctx, "shop", metav1.GetOptions{})
	shop.Status.Selected = 3
	meta.SetStatusCondition(&shop.Status.Conditions, metav1.Condition{Type: v1alpha1.Ready, Status: metav1.ConditionTrue, Reason: v1alpha1.InForce})
	_, _ = policies.UpdateStatus(ctx, shop, metav1.UpdateOptions{})

	list, err := policies.List(ctx, metav1.ListOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range list.Items {
		fmt.Println(p.Name, p.Spec.As, p.Status.Selected, meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.Ready))
	}
	// Output: shop mirror 3 true
}
