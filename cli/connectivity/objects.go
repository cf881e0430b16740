package connectivity

import (
	"encoding/json"
	"fmt"
)

// Label marks everything that a test makes; its value is "true".
const Label = "strait.io/connectivity-test"

// Container is that of the pods.
const Container = "probe"

// Setup is what the objects of one cluster depend on.
type Setup struct {
	Namespace, Cluster string
	// ExportAPI is the apiVersion of ServiceExports in the cluster.
	ExportAPI string
	// Image is that of the daemon, and PullSecrets what it is pulled with.
	Image       string
	PullSecrets []string
	// Nodes get a pod each, and with Host another one in the node's network.
	Nodes []string
	Host  bool
}

type object = map[string]any

// NamespaceObject is the namespace of the test. Pods in the node's network need its label, where the
// cluster enforces Pod Security Standards.
func (s Setup) NamespaceObject() []byte {
	level := "restricted"
	if s.Host {
		level = "privileged"
	}
	return encode(object{"apiVersion": "v1", "kind": "Namespace", "metadata": object{
		"name": s.Namespace, "labels": object{Label: "true", "pod-security.kubernetes.io/enforce": level}}})
}

// Objects are the Services, their exports, and the pods in the pods' network.
func (s Setup) Objects() (out [][]byte) {
	for _, name := range []string{ServiceOf(s.Cluster), HeadlessOf(s.Cluster)} {
		spec := object{"selector": object{Label: "true", "role": "pod"}, "ipFamilyPolicy": "PreferDualStack", "ports": []object{
			{"name": "tcp", "protocol": "TCP", "port": ServicePort, "targetPort": PodPort},
			{"name": "udp", "protocol": "UDP", "port": ServicePort, "targetPort": PodPort}}}
		if name == HeadlessOf(s.Cluster) {
			spec["clusterIP"] = "None"
		}
		out = append(out,
			encode(object{"apiVersion": "v1", "kind": "Service", "metadata": s.meta(name, nil), "spec": spec}),
			encode(object{"apiVersion": s.ExportAPI, "kind": "ServiceExport", "metadata": s.meta(name, nil)}))
	}
	for i, node := range s.Nodes {
		out = append(out, s.pod(fmt.Sprintf("pod-%d", i+1), node, false))
	}
	return out
}

// HostPods are the pods in the nodes' network. A cluster may refuse them.
func (s Setup) HostPods() (out [][]byte) {
	if !s.Host {
		return nil
	}
	for i, node := range s.Nodes {
		out = append(out, s.pod(fmt.Sprintf("host-%d", i+1), node, true))
	}
	return out
}

func (s Setup) meta(name string, more object) object {
	labels := object{Label: "true"}
	for k, v := range more {
		labels[k] = v
	}
	return object{"name": name, "namespace": s.Namespace, "labels": labels}
}

// pod is unprivileged. That in the node's network only makes calls: it listens on nothing.
func (s Setup) pod(name, node string, host bool) []byte {
	args, role := []string{"probe", "serve", "--as", Identity{s.Cluster, node, name}.String()}, "pod"
	container := object{
		"name": Container, "image": s.Image, "imagePullPolicy": "IfNotPresent", "command": []string{"/strait"},
		"resources":       object{"requests": object{"cpu": "10m", "memory": "32Mi"}, "limits": object{"memory": "256Mi"}},
		"securityContext": object{"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": object{"drop": []string{"ALL"}}},
	}
	spec := object{
		// The nodes were chosen among those that run the daemon, whatever their taints.
		"affinity": object{"nodeAffinity": object{"requiredDuringSchedulingIgnoredDuringExecution": object{"nodeSelectorTerms": []object{
			{"matchFields": []object{{"key": "metadata.name", "operator": "In", "values": []string{node}}}}}}}},
		"tolerations":                   []object{{"operator": "Exists"}},
		"automountServiceAccountToken":  false,
		"enableServiceLinks":            false,
		"terminationGracePeriodSeconds": 1,
		"securityContext":               object{"runAsNonRoot": true, "runAsUser": 65532, "runAsGroup": 65532, "seccompProfile": object{"type": "RuntimeDefault"}},
	}
	if host {
		args, role = []string{"probe", "wait"}, "host"
		spec["hostNetwork"], spec["dnsPolicy"] = true, "ClusterFirstWithHostNet"
	} else {
		container["ports"] = []object{{"containerPort": PodPort, "protocol": "TCP"}, {"containerPort": PodPort, "protocol": "UDP"}}
		container["readinessProbe"] = object{"httpGet": object{"path": "/", "port": PodPort}, "periodSeconds": 1}
		spec["hostname"], spec["subdomain"] = name, HeadlessOf(s.Cluster)
	}
	container["args"] = args
	spec["containers"] = []object{container}
	var secrets []object
	for _, name := range s.PullSecrets {
		secrets = append(secrets, object{"name": name})
	}
	if secrets != nil {
		spec["imagePullSecrets"] = secrets
	}
	return encode(object{"apiVersion": "v1", "kind": "Pod", "metadata": s.meta(name, object{"role": role}), "spec": spec})
}

// encode writes JSON, which is YAML too. Maps of strings and numbers can always be encoded.
func encode(o object) []byte {
	text, _ := json.Marshal(o)
	return text
}
