package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/kube"
	"strait.io/strait/internal/durable"
	"strait.io/strait/internal/problem"
)

// who is this node's identity, as other nodes know it.
type who struct {
	Cluster clustermesh.ClusterName `json:"cluster"`
	// UID distinguishes clusters of the same name. It is empty if the cluster has no API server.
	UID string `json:"uid,omitempty"`
	// Advertise is the address that other nodes dial.
	Advertise netip.AddrPort `json:"advertise"`
}

const (
	// identityFile stores this node's identity, for a start while the API server is away.
	identityFile = "identity.json"
	// identityPatience is how long a starting daemon waits for the API server before it uses
	// identityFile.
	identityPatience = 5 * time.Second
	// identityRemind is how often the daemon logs what it is waiting for.
	identityRemind = 10 * time.Second
)

// decideWho determines this node's identity from what the API server says. If that is not available
// and patient is true, it is the identity of the daemon's last run. Waiting says what is missing;
// it is empty if nothing is. An error is a mistake that waiting does not fix.
func decideWho(c Config, id kube.Identity, last who, patient bool) (w who, waiting string, err error) {
	if w.Advertise = fixedAdvertise(c); !w.Advertise.IsValid() && id.Node.IsValid() {
		w.Advertise = netip.AddrPortFrom(id.Node, c.Gossip.Bind.Port())
	}
	w.UID = id.UID
	if id.Read {
		if w.Cluster, err = clusterName(c.Cluster, id.Property); err != nil {
			return who{}, "", err
		}
	}
	switch {
	case w.UID == "":
		waiting = "the UID of Namespace kube-system, from the API server"
	case !id.Read:
		waiting = "ClusterProperty cluster.clusterset.k8s.io, from the API server"
	case w.Cluster == "":
		waiting = "the cluster's id: create ClusterProperty cluster.clusterset.k8s.io, or set cluster in the config"
	case !w.Advertise.IsValid():
		waiting = fmt.Sprintf("an address of Node %q: if that is not this machine, set node in the config, otherwise set gossip.advertise", c.Node)
	default:
		return w, "", nil
	}
	if patient && last.Cluster != "" && (c.Cluster == "" || string(last.Cluster) == c.Cluster) && !id.Read {
		if fixed := fixedAdvertise(c); fixed.IsValid() {
			last.Advertise = fixed
		}
		return last, "", nil
	}
	return who{}, waiting, nil
}

// clusterName returns the cluster's id, from the config or its ClusterProperty; empty if neither
// has it.
func clusterName(config, property string) (clustermesh.ClusterName, error) {
	if config != "" && property != "" && config != property {
		return "", fmt.Errorf("cluster: is %q in the config, but ClusterProperty cluster.clusterset.k8s.io says %q: make them the same, or leave cluster out of the config", config, property)
	}
	if config != "" || property == "" {
		return clustermesh.ClusterName(config), nil
	}
	if msgs := validation.IsDNS1123Label(property); len(msgs) > 0 {
		return "", fmt.Errorf("ClusterProperty cluster.clusterset.k8s.io: spec.value: %q cannot be part of a DNS name: %s", property, msgs[0])
	}
	return clustermesh.ClusterName(property), nil
}

// waitWho waits until this node's identity is known.
func (k *kubernetes) waitWho(ctx context.Context, d *Daemon) (who, error) {
	last, err := loadWho(d.config.StateDir)
	if err != nil {
		d.log.Warn("cannot read this node's last identity", "err", err)
	}
	start, said := time.Now(), time.Time{}
	for {
		// This loop polls, because the source's Changed channel belongs to the loop that runs after
		// it.
		w, waiting, err := decideWho(d.config, k.source.Identity(), last, time.Since(start) > identityPatience)
		if err != nil {
			return who{}, err
		}
		if waiting == "" {
			return w, d.remember(w, last)
		}
		if now := time.Now(); now.Sub(start) > time.Second && now.Sub(said) > identityRemind {
			said = now
			local, _ := d.source.Local()
			d.log.Warn("cannot start yet", "waiting", waiting, "apiserver", k.host)
			for _, p := range local.Problems {
				d.log.Warn("problem", "code", p.Code, "what", p.String())
			}
		}
		select {
		case <-ctx.Done():
			return who{}, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// remember saves this node's identity if it changed, and logs the previous one.
func (d *Daemon) remember(w, last who) error {
	if w == last {
		return nil
	}
	if last.Cluster != "" {
		d.log.Warn("this node had another identity", "cluster", last.Cluster, "uid", last.UID, "advertise", last.Advertise)
	}
	b, err := json.Marshal(w)
	if err == nil {
		err = durable.Replace(filepath.Join(d.config.StateDir, identityFile), func(f *os.File) error {
			_, err := f.Write(b)
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("stateDir: save this node's identity: %w", err)
	}
	return nil
}

// maxIdentity bounds that file, in bytes.
const maxIdentity = 64 << 10

func loadWho(dir string) (w who, err error) {
	b, err := durable.Read(filepath.Join(dir, identityFile), maxIdentity)
	if errors.Is(err, fs.ErrNotExist) {
		return who{}, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &w)
	}
	if err != nil {
		return who{}, fmt.Errorf("read %s: %w", identityFile, err)
	}
	return w, nil
}

// identityProblems reports an API server that now gives another identity. A cluster's id must not
// change while it is a member of the clusterset.
func identityProblems(c Config, now who, id kube.Identity) []clustermesh.Problem {
	if !id.Read || id.UID == "" {
		return nil
	}
	p := clustermesh.Problem{Code: problem.ClusterIdentityChanged, Object: "cluster " + string(now.Cluster), Try: "undo the change, or restart strait's daemons on all nodes of the cluster to leave under the old identity and join under the new"}
	switch name, err := clusterName(c.Cluster, id.Property); {
	case err != nil:
		p.Message = err.Error() + "; the daemon continues as " + string(now.Cluster)
	case name != now.Cluster && name != "":
		p.Message = fmt.Sprintf("its id is now %q; the daemon continues as %s", name, now.Cluster)
	case id.UID != now.UID:
		p.Message = fmt.Sprintf("the API server now belongs to another cluster: its UID is %s, and was %s", id.UID, now.UID)
	default:
		return nil
	}
	return []clustermesh.Problem{p}
}
