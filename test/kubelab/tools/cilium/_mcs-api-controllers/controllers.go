// Package controllers stands in for the package of that name of sigs.k8s.io/mcs-api, which the
// module proxy does not serve. Cilium uses only this name of an annotation.
package controllers

// DerivedServiceAnnotation names the derived Service of a ServiceImport.
const DerivedServiceAnnotation = "multicluster.kubernetes.io/derived-service"
