// Package ovn reads what OVN-Kubernetes writes on a Node about how the packets of its pods leave.
//
// Input is an annotation, output is a fact. Pure. It must not know what follows from it.
package ovn

import "encoding/json"

// Annotation is the annotation of a Node that describes its gateway, as JSON, by network
// (ovn-kubernetes go-controller/pkg/util/node_annotations.go).
const Annotation = "k8s.ovn.org/l3-gateway-config"

// Bypasses reports whether the packets of the pods leave the node without seeing its routes: the
// gateway of the network "default" is in mode "shared". In mode "local", which OpenShift calls
// routingViaHost, they see them. What cannot be read, or has no such network, does not bypass
// anything.
func Bypasses(annotation string) bool {
	var networks map[string]struct {
		Mode string `json:"mode"`
	}
	return json.Unmarshal([]byte(annotation), &networks) == nil && networks["default"].Mode == "shared"
}
