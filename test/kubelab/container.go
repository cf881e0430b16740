package kubelab

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Container names a running container. An empty Pod or Name stands for any.
type Container struct {
	Namespace, Pod, Name string
}

// DaemonContainer is straitd's container on each node.
var DaemonContainer = Container{Namespace: "strait-system", Name: "straitd"}

// In runs a command in a container on any of these nodes, and returns its stdout: with the
// container's namespaces, cgroup v2 and environment, but as root of the node. It is `kubectl exec`
// without kubectl, the API server, kubelet and the runtime, which take most of a second together.
// What may be executed in a pod, and by whom, must be tested with kubectl.
func (l *Lab) In(ctx context.Context, nodes []string, c Container, argv ...string) (string, error) {
	for _, node := range nodes {
		found, err := l.findContainer(node, c)
		if err != nil {
			return "", err
		}
		if found != nil {
			return found.run(ctx, argv)
		}
	}
	return "", fmt.Errorf("no container %+v runs on the nodes %v", c, nodes)
}

// InCluster is In on any node of a cluster.
func (l *Lab) InCluster(ctx context.Context, cluster string, c Container, argv ...string) (string, error) {
	t, err := l.Topology.Cluster(cluster)
	if err != nil {
		return "", err
	}
	var nodes []string
	for _, n := range t.Nodes {
		nodes = append(nodes, n.Name)
	}
	return l.In(ctx, nodes, c, argv...)
}

// LogOf returns what a container on a node has written, each line after its time, as `kubectl logs
// --timestamps` does. It reads the runtime's file, so it needs neither kubectl nor the API server, and
// takes no time from what it looks at. Lines are shorter than the runtime's limit of 16 kB.
func (l *Lab) LogOf(node string, c Container) (string, error) {
	files, err := filepath.Glob(l.path(node, "log", "pods", c.Namespace+"_"+c.Pod+"_*", c.Name, "*.log"))
	if err != nil {
		return "", fmt.Errorf("find the log of %+v: %w", c, err)
	}
	if len(files) == 0 {
		return "", fmt.Errorf("%s has no log of %+v", node, c)
	}
	var out strings.Builder
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("read the log of %+v: %w", c, err)
		}
		timed(&out, string(b))
	}
	return out.String(), nil
}

// timed writes the lines of a log of the CRI ("TIME STREAM TAG TEXT") without their streams and tags. A
// line without an end is still being written.
func timed(out *strings.Builder, log string) {
	for line := range strings.Lines(log) {
		f := strings.SplitN(line, " ", 4)
		if len(f) == 4 && strings.HasSuffix(line, "\n") {
			out.WriteString(f[0] + " " + f[3])
		}
	}
}

// container is a running container as containerd keeps it.
type container struct {
	// node is the process ID of the node's init process, and pid that of the container's, in the
	// node's PID namespace.
	node, pid string
	env       []string
	// cgroup is where the container's cgroup v2 is on this machine.
	cgroup string
}

// tasks is where containerd has a folder for each container: config.json is its OCI
// specification, init.pid the process ID of its first process.
const tasks = "/run/containerd/io.containerd.runtime.v2.task/k8s.io"

// findContainer returns nil if none on the node is meant. A container that comes or goes meanwhile
// does not count.
func (l *Lab) findContainer(node string, c Container) (*container, error) {
	_, n, err := l.find(node)
	if err != nil {
		return nil, err
	}
	init, err := l.pid(n)
	if err != nil {
		return nil, nil // the node is down
	}
	root := filepath.Join("/proc", init, "root")
	folders, err := os.ReadDir(filepath.Join(root, tasks))
	if err != nil && !os.IsNotExist(err) {
		return nil, fmt.Errorf("list containers of %s: %w", node, err)
	}
	for _, folder := range folders {
		dir := filepath.Join(root, tasks, folder.Name())
		spec, err := readSpec(dir)
		if err != nil || !spec.is(c) {
			continue
		}
		pid, err := os.ReadFile(filepath.Join(dir, "init.pid"))
		if err != nil {
			continue
		}
		if in := l.cgroupOf(filepath.Join(root, "proc", string(pid))); in != "" {
			return &container{init, string(pid), spec.Process.Env, in}, nil
		}
	}
	return nil, nil
}

// spec is the part of an OCI runtime specification that In needs. The annotations are those of
// containerd's CRI plugin.
type spec struct {
	Annotations map[string]string
	Process     struct{ Env []string }
}

func readSpec(dir string) (s spec, err error) {
	b, err := os.ReadFile(filepath.Join(dir, "config.json"))
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal(b, &s)
}

func (s spec) is(c Container) bool {
	const prefix = "io.kubernetes.cri."
	return s.Annotations[prefix+"container-type"] == "container" &&
		s.Annotations[prefix+"sandbox-namespace"] == c.Namespace &&
		(c.Pod == "" || s.Annotations[prefix+"sandbox-name"] == c.Pod) &&
		(c.Name == "" || s.Annotations[prefix+"container-name"] == c.Name)
}

// cgroupOf returns a process's cgroup v2, or "" if the process has ended.
func (l *Lab) cgroupOf(proc string) string {
	b, err := os.ReadFile(filepath.Join(proc, "cgroup"))
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(b)) {
		if path, ok := strings.CutPrefix(line, "0::"); ok {
			return filepath.Join(l.cgroup2, strings.TrimSpace(path))
		}
	}
	return ""
}

func (c *container) run(ctx context.Context, argv []string) (string, error) {
	nsenter, err := exec.LookPath("nsenter")
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, nsenter, slices.Concat(
		// First the node's namespaces: the container's process ID is one of the node's.
		[]string{"-t", c.node, "-m", "-p", "--", nsenter, "-t", c.pid, "-m", "-u", "-i", "-n", "-p", "--"}, argv)...)
	cmd.Env = c.env
	return finishIn(cmd, c.cgroup)
}
