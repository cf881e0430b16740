// Package machine is what the lab tells the first process of a node: package kubelab writes it, command init
// reads it. It is data alone, and must not know Kubernetes.
package machine

// Machine is what a node needs to be one.
type Machine struct {
	// Root is the folder whose children lib and log become /var/lib and /var/log.
	Root string
	// Cgroup is the node's own cgroup v2, to be found at CgroupAt.
	Cgroup, CgroupAt string
	// Path is PATH.
	Path string
	// Runtime is started first, and has to listen at Socket; Load is run to its end next, then come Services.
	Runtime  Service
	Socket   string
	Load     []string
	Services []Service
}

// Service is a program that always runs.
type Service struct {
	Argv []string
	Log  string
}
