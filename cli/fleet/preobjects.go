package fleet

import (
	"encoding/json"
	"errors"

	"sigs.k8s.io/yaml"
)

const preflightContainer = "preflight"

// preflightCommand is what is run in a pod of a preflight.
func preflightCommand(node string, more ...string) []string {
	command := append([]string{"/straitd", "preflight"}, more...)
	command = append(command, "--config=/etc/strait/strait.yaml", "--node="+node)
	if len(more) == 0 {
		command = append(command, "--root="+preflightRoot)
	}
	return command
}

// preflightRoot is where the pods see parts of the node's file system.
const preflightRoot = "/host"

type tree = map[string]any

// preflightObjects returns what a preflight creates: its namespace, the daemon's configuration, and the
// daemon's own DaemonSet, of which only what decides where pods run and what they may do is kept. They
// mount no Secret, have no account, and change nothing.
func preflightObjects(docs [][]byte) ([][]byte, error) {
	labels := tree{preflightLabel: "true"}
	meta := func(name string) tree {
		return tree{"name": name, "namespace": preflightNamespace, "labels": labels}
	}
	out := []any{tree{"apiVersion": "v1", "kind": "Namespace", "metadata": tree{"name": preflightNamespace,
		"labels": tree{preflightLabel: "true", "pod-security.kubernetes.io/enforce": "privileged"}}}}
	for _, d := range docs {
		var o tree
		if err := yaml.Unmarshal(d, &o); err != nil {
			return nil, err
		}
		if name, _ := o["metadata"].(tree)["name"].(string); name != "strait" {
			continue
		}
		switch o["kind"] {
		case "ConfigMap":
			o["metadata"] = meta("strait")
			out = append(out, o)
		case "DaemonSet":
			pod, err := preflightPod(o)
			if err != nil {
				return nil, err
			}
			out = append(out, tree{"apiVersion": o["apiVersion"], "kind": "DaemonSet", "metadata": meta(preflightNamespace),
				"spec": tree{"selector": tree{"matchLabels": labels}, "template": tree{"metadata": tree{"labels": labels}, "spec": pod}}})
		}
	}
	if len(out) != 3 {
		return nil, errors.New("the chart has no ConfigMap or DaemonSet strait")
	}
	var text [][]byte
	for _, o := range out {
		t, err := json.Marshal(o)
		if err != nil {
			return nil, err
		}
		text = append(text, t)
	}
	return text, nil
}

// preflightPod makes the pod of a preflight of that of the daemon.
func preflightPod(daemonSet tree) (tree, error) {
	spec, _ := daemonSet["spec"].(tree)
	template, _ := spec["template"].(tree)
	pod, _ := template["spec"].(tree)
	containers, _ := pod["containers"].([]any)
	if len(containers) == 0 {
		return nil, errors.New("the chart's DaemonSet strait has no container")
	}
	// Quotas can forbid this class outside of strait's namespace.
	for _, field := range []string{"initContainers", "serviceAccountName", "priorityClassName"} {
		delete(pod, field)
	}
	pod["automountServiceAccountToken"], pod["enableServiceLinks"], pod["terminationGracePeriodSeconds"] = false, false, 1
	container, _ := containers[0].(tree)
	container["name"], container["command"] = preflightContainer, []string{"/strait", "probe", "wait"}
	for _, field := range []string{"startupProbe", "livenessProbe", "readinessProbe", "ports", "args"} {
		delete(container, field)
	}
	mounts, volumes := named(container["volumeMounts"], "bpffs", "cgroup"), named(pod["volumes"], "bpffs", "cgroup")
	for _, m := range mounts {
		m.(tree)["readOnly"] = true
	}
	mounts = append(mounts, tree{"name": "config", "mountPath": "/etc/strait", "readOnly": true})
	volumes = append(volumes, tree{"name": "config", "configMap": tree{"name": "strait"}})
	for _, dir := range []string{"dev", "lib", "sys"} {
		mounts = append(mounts, tree{"name": dir, "mountPath": preflightRoot + "/" + dir, "readOnly": true})
		volumes = append(volumes, tree{"name": dir, "hostPath": tree{"path": "/" + dir}})
	}
	container["volumeMounts"], pod["volumes"], pod["containers"] = mounts, volumes, []any{container}
	return pod, nil
}

// named returns the elements of a list that have one of these names.
func named(list any, names ...string) (out []any) {
	all, _ := list.([]any)
	for _, x := range all {
		for _, name := range names {
			if o, _ := x.(tree); o["name"] == name {
				out = append(out, x)
			}
		}
	}
	return out
}
