package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"strait.io/strait/clustermesh"
)

// SignerAudience is the audience of the tokens with which nodes prove who they are. The API server itself
// refuses such a token, so it is good for nothing else.
const SignerAudience = "strait.io/signer"

// Account is the service account of the daemons.
const Account = "strait"

// nodeNameKey is the field of a TokenReview that has the node of the token's pod
// (Kubernetes 1.30, KEP-4193).
const nodeNameKey = "authentication.kubernetes.io/node-name"

// NodeOf asks the API server on which node a token of strait's account in a namespace is used. Kubelets
// get such tokens only for pods of their own node, and a token ends with its pod.
func (c Client) NodeOf(ctx context.Context, token, namespace string) (clustermesh.NodeName, error) {
	if token == "" {
		return "", errors.New("the request has no token: set authority.tokenFile there")
	}
	review, err := c.builtin.TokenReviews().Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: []string{SignerAudience}},
	}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("the API server cannot be asked about a token: %w", err)
	}
	return nodeOf(review.Status, namespace)
}

// nodeOf reads the answer about a token.
func nodeOf(s authenticationv1.TokenReviewStatus, namespace string) (clustermesh.NodeName, error) {
	want := fmt.Sprintf("system:serviceaccount:%s:%s", namespace, Account)
	nodes := s.User.Extra[nodeNameKey]
	switch {
	case !s.Authenticated || !slices.Contains(s.Audiences, SignerAudience):
		return "", fmt.Errorf("the API server does not accept the token: %s", s.Error)
	case s.User.Username != want:
		return "", fmt.Errorf("the token is that of %s, not of %s", s.User.Username, want)
	case len(nodes) != 1:
		return "", errors.New("the API server does not say on which node the token is used: that takes Kubernetes 1.30")
	}
	return clustermesh.NodeName(nodes[0]), nil
}
