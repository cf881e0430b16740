package kubelab

import (
	"encoding/json"
	"fmt"
	"os"
)

// kubeconfig is the part of a Kubernetes client's configuration that the lab needs. It is written
// as JSON, which is valid YAML.
type kubeconfig struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Clusters   []configCluster `json:"clusters"`
	Users      []configUser    `json:"users"`
	Contexts   []configContext `json:"contexts"`
	Current    string          `json:"current-context"`
}

type configCluster struct {
	Name    string `json:"name"`
	Cluster struct {
		Server string `json:"server"`
		CA     []byte `json:"certificate-authority-data"`
	} `json:"cluster"`
}

type configUser struct {
	Name string `json:"name"`
	User struct {
		Cert []byte `json:"client-certificate-data"`
		Key  []byte `json:"client-key-data"`
	} `json:"user"`
}

type configContext struct {
	Name    string `json:"name"`
	Context struct {
		Cluster string `json:"cluster"`
		User    string `json:"user"`
	} `json:"context"`
}

// add adds a context, named after the cluster, for the user with the certificate user.crt. The
// first one added becomes the current context.
func (k *kubeconfig) add(l *Lab, c *Cluster, user, server string) error {
	var err error
	read := func(name string) []byte {
		b, e := os.ReadFile(l.path(c.Name, name))
		if e != nil {
			err = fmt.Errorf("read certificate: %w", e)
		}
		return b
	}
	cluster, who, context := configCluster{Name: c.Name}, configUser{Name: c.Name}, configContext{Name: c.Name}
	cluster.Cluster.Server, cluster.Cluster.CA = server, read("ca.crt")
	who.User.Cert, who.User.Key = read(user+".crt"), read(user+".key")
	context.Context.Cluster, context.Context.User = c.Name, c.Name
	k.Clusters, k.Users, k.Contexts = append(k.Clusters, cluster), append(k.Users, who), append(k.Contexts, context)
	if k.Current == "" {
		k.Current = c.Name
	}
	return err
}

func (k *kubeconfig) write(file string) error {
	k.APIVersion, k.Kind = "v1", "Config"
	b, err := json.MarshalIndent(k, "", "  ")
	if err != nil {
		return fmt.Errorf("encode kubeconfig: %w", err)
	}
	if err := os.WriteFile(file, append(b, '\n'), 0o600); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	return nil
}

// writeConfigOf writes the kubeconfig for one user of one cluster, and returns the file's path.
func (l *Lab) writeConfigOf(c *Cluster, user, server string) (string, error) {
	var k kubeconfig
	if err := k.add(l, c, user, server); err != nil {
		return "", err
	}
	file := l.path(c.Name, user+".kubeconfig")
	return file, k.write(file)
}

// Kubeconfig returns the path of the file with all clusters' contexts. It works on this machine, in
// the root network namespace.
func (l *Lab) Kubeconfig() string { return l.path("kubeconfig") }

// ConfigOf is like Kubeconfig, for a file with one cluster's context.
func (l *Lab) ConfigOf(cluster string) string { return l.path(cluster, "admin.kubeconfig") }

// writeKubeconfig writes the file with all contexts, using the addresses that the forwarders listen
// on.
func (l *Lab) writeKubeconfig() error {
	var k kubeconfig
	for i := range l.Topology.Clusters {
		c := &l.Topology.Clusters[i]
		server, err := os.ReadFile(l.path(c.Name, "server"))
		if err != nil {
			return fmt.Errorf("read address of the API server: %w", err)
		}
		if err := k.add(l, c, "admin", string(server)); err != nil {
			return err
		}
	}
	if err := k.write(l.Kubeconfig()); err != nil {
		return err
	}
	if err := os.Symlink(l.program("kubectl"), l.path("bin", "kubectl")); err != nil {
		return fmt.Errorf("link kubectl: %w", err)
	}
	return nil
}
