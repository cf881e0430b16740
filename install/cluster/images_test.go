package cluster

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestDigests(t *testing.T) {
	pod := func(id string) (p corev1.Pod) {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "straitd", ImageID: id}}
		return p
	}
	for want, pods := range map[string][]corev1.Pod{
		"[]":                    {{}, pod(""), pod("sha256:c0")},
		"[sha256:aa]":           {pod("reg.example:5000/strait@sha256:aa"), pod("other/strait@sha256:aa")},
		"[sha256:aa sha256:bb]": {pod("reg/strait@sha256:bb"), pod("reg/strait@sha256:aa")},
	} {
		if got := fmt.Sprint(digests(pods)); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
