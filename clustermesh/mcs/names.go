package mcs

import (
	"cmp"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/object"
)

// Names in the objects that strait writes; its labels are in package object.
const (
	// DerivedAnnotation names the derived Service on a ServiceImport.
	DerivedAnnotation = "multicluster.kubernetes.io/derived-service"
	// DerivedPrefix begins the names of derived Services unless another prefix is configured.
	DerivedPrefix = "derived-"
)

const (
	maxName  = 63 // of a Service: a DNS label
	hashSize = 10
	// maxPrefix leaves room for a letter of the import's name, a dash and a hash.
	maxPrefix = maxName - 1 - 1 - hashSize
)

// CheckPrefix returns an error if the name of a Service cannot begin with prefix. An empty prefix
// is valid and means none.
func CheckPrefix(prefix string) error {
	if len(prefix) > maxPrefix {
		return fmt.Errorf("is longer than %d characters", maxPrefix)
	}
	if !object.IsServiceName(prefix + "x") {
		return errors.New("cannot begin the name of a Service: start with a letter, and use lower-case letters, digits and '-', such as derived-")
	}
	return nil
}

// derivedNames returns the names that the Service derived from an import may have, best first.
// Without a prefix, the best is the import's own name. If that is not a valid name for a Service,
// or a Service that is not strait's has it, the name begins with DerivedPrefix.
func (c Config) derivedNames(importName string) []string {
	if c.DerivedPrefix == nil {
		return []string{derivedName(DerivedPrefix, importName)}
	}
	names := []string{derivedName(*c.DerivedPrefix, importName)}
	switch {
	case *c.DerivedPrefix != "":
		return names
	case !object.IsServiceName(names[0]):
		names = nil
	}
	return append(names, derivedName(DerivedPrefix, importName))
}

// DerivedService returns the name of the Service that is derived from an import, empty if there is
// none in this cluster. Own is true if the cluster has a Service of the import's name.
func (c Config) DerivedService(importName string, own bool) string {
	if !c.derived() {
		return ""
	}
	names := c.derivedNames(importName)
	if own {
		return names[len(names)-1]
	}
	return names[0]
}

// derivedName returns the prefix followed by the import's name. If that is too long for a Service,
// it is cut, and a hash keeps it distinct.
func derivedName(prefix, importName string) string {
	if n := prefix + importName; len(n) <= maxName {
		return n
	}
	return prefix + importName[:maxName-len(prefix)-1-hashSize] + "-" + hash(importName)
}

// hash returns a short name for a list of words, in characters that are allowed in every Kubernetes
// name.
func hash(words ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(words, "\x00")))
	return strings.ToLower(base32.HexEncoding.EncodeToString(sum[:])[:hashSize])
}

// OurImport reports whether strait made the import. A user's import is never deleted, and ips is
// all that strait writes of its spec.
func OurImport(i *mcsv1beta1.ServiceImport) bool {
	return i.Labels[object.LabelManagedBy] == object.ManagedBy
}

// ServiceOf returns the import that a Service is derived from, and whether strait made the Service.
func ServiceOf(s *corev1.Service) (clustermesh.ServiceName, bool) {
	name := s.Labels[object.LabelServiceImport]
	return clustermesh.ServiceName{Namespace: s.Namespace, Name: name}, name != "" && s.Labels[object.LabelManagedBy] == object.ManagedBy
}

// SliceOf returns the import or global Service that a slice belongs to, and whether strait made the
// slice.
func SliceOf(s *discoveryv1.EndpointSlice) (clustermesh.ServiceName, bool) {
	name := cmp.Or(s.Labels[mcsv1beta1.LabelServiceName], s.Labels[object.LabelServiceImport], s.Labels[object.LabelGlobalService])
	return clustermesh.ServiceName{Namespace: s.Namespace, Name: name}, name != "" && s.Labels[discoveryv1.LabelManagedBy] == object.SliceManager
}

// owner returns the reference that makes an import the owner of what is made for it, for garbage
// collection. version is that of the MCS API that is served; empty means v1beta1.
func owner(i *mcsv1beta1.ServiceImport, version string) []metav1.OwnerReference {
	return []metav1.OwnerReference{{
		APIVersion: mcsv1beta1.GroupName + "/" + cmp.Or(version, mcsv1beta1.GroupVersion.Version), Kind: mcsv1beta1.ServiceImportKindName, Name: i.Name, UID: i.UID,
	}}
}
