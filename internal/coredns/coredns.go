// Package coredns has what several packages must know alike of a cluster's CoreDNS: which versions
// can answer for a clusterset, and how its pods show that strait changed its configuration.
//
// Inputs are names of images, outputs are facts. Pure. It must not know how the pods are read.
package coredns

import (
	"net/netip"
	"regexp"
	"strconv"
)

const (
	// Namespace is where the cluster's DNS runs, and Selector selects its Services and pods there: all
	// distributions keep the label of kube-dns, which CoreDNS replaced.
	Namespace, Selector = "kube-system", "k8s-app=kube-dns"
	// Mark is an annotation of its pods: what identifies the Corefile of strait's for which they were
	// restarted. Pods without it have a configuration that strait did not change.
	Mark = "strait.io/corefile-hash"
	// Since is the first version that can answer for a clusterset.
	Since = "1.12.2"
)

// Server is the cluster's own DNS, as the API server shows it.
type Server struct {
	// Service has its address, which pods are given. Addr is invalid if there is none.
	Service string
	Addr    netip.AddrPort
	// Images are those of its pods.
	Images []string
	// Marked is true if a pod has the annotation Mark.
	Marked bool
}

// Old returns the version of a CoreDNS among the pods that cannot answer for a clusterset; empty if
// none is known to be too old.
func (s Server) Old() string {
	for _, image := range s.Images {
		if yes, known := Multicluster(image); known && !yes && named.MatchString(image) {
			return versionTag.FindStringSubmatch(image)[1]
		}
	}
	return ""
}

var (
	versionTag = regexp.MustCompile(`:v?((\d+)\.(\d+)\.(\d+))`)
	named      = regexp.MustCompile(`coredns[^/]*$`)
)

// Multicluster reports whether the image's tag names a CoreDNS with the option multicluster: Since or
// newer. known is false if the tag has no version.
func Multicluster(image string) (yes, known bool) {
	m := versionTag.FindStringSubmatch(image)
	if m == nil {
		return false, false
	}
	version := 0
	for _, part := range m[2:] {
		n, err := strconv.Atoi(part)
		if err != nil || n > 999 {
			return false, false
		}
		version = version*1000 + n
	}
	return version >= 1_012_002, true
}
