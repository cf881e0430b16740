// Package machine is the configuration of a node's init process. Package kubelab writes it, command
// init reads it. It is only data, and must not know Kubernetes.
package machine

// Machine is what a node's init process has to set up and start.
type Machine struct {
	// Root is the folder whose children lib and log become /var/lib and /var/log.
	Root string
	// Cgroup is the node's own cgroup v2. It is mounted at CgroupAt.
	Cgroup, CgroupAt string
	// Path is the environment variable PATH.
	Path string
	// Runtime is started first. When it listens at Socket, the command Load is run. When that has
	// ended, Services are started.
	Runtime  Service
	Socket   string
	Load     []string
	Services []Service
}

// Service is a program that is restarted whenever it ends.
type Service struct {
	Argv []string
	// Env are its environment variables besides the node's, each as NAME=value.
	Env []string
	Log string
}
