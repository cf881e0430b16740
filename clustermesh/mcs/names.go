package mcs

import (
	"crypto/sha256"
	"encoding/base32"
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
	// DerivedPrefix begins the name of every derived Service.
	DerivedPrefix = "derived-"
)

const (
	maxName  = 63 // of a Service: a DNS label
	hashSize = 10
)

// DerivedName is the name of the Service derived from an import. A name that would be too long for a Service
// is cut and told apart by a hash.
func DerivedName(importName string) string {
	if n := DerivedPrefix + importName; len(n) <= maxName {
		return n
	}
	return DerivedPrefix + importName[:maxName-len(DerivedPrefix)-1-hashSize] + "-" + hash(importName)
}

// hash is a short name for a list of words, in characters that every Kubernetes name may have.
func hash(words ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(words, "\x00")))
	return strings.ToLower(base32.HexEncoding.EncodeToString(sum[:])[:hashSize])
}

// OurImport reports that strait made the import; a user's is never deleted, and of its spec only ips is written.
func OurImport(i *mcsv1beta1.ServiceImport) bool {
	return i.Labels[object.LabelManagedBy] == object.ManagedBy
}

// ServiceOf returns the import that a Service of strait is derived from.
func ServiceOf(s *corev1.Service) (clustermesh.ServiceName, bool) {
	name := s.Labels[object.LabelServiceImport]
	return clustermesh.ServiceName{Namespace: s.Namespace, Name: name}, name != "" && s.Labels[object.LabelManagedBy] == object.ManagedBy
}

// SliceOf returns the import that a slice of strait belongs to.
func SliceOf(s *discoveryv1.EndpointSlice) (clustermesh.ServiceName, bool) {
	name := s.Labels[mcsv1beta1.LabelServiceName]
	if name == "" {
		name = s.Labels[object.LabelServiceImport]
	}
	return clustermesh.ServiceName{Namespace: s.Namespace, Name: name}, name != "" && s.Labels[discoveryv1.LabelManagedBy] == object.SliceManager
}

// owner makes an import the owner of what is made for it, for garbage collection.
func owner(i *mcsv1beta1.ServiceImport) []metav1.OwnerReference {
	return []metav1.OwnerReference{{
		APIVersion: mcsv1beta1.GroupVersion.String(), Kind: mcsv1beta1.ServiceImportKindName, Name: i.Name, UID: i.UID,
	}}
}
