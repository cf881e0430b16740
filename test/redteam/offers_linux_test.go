package redteam

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/replica"
	"strait.io/strait/internal/testutil"
)

// manyExports is how many exports with long names make the record of a cluster larger than what is sent
// without being asked for, which is 64 KiB.
const manyExports = 900

// TestFalseOffers: a holder of the gossip key offers all daemons versions of all records that do not exist,
// and records that do not, all the time. What exists still arrives, of records too that are only sent when
// they are asked for, and a new machine gets everything.
func TestFalseOffers(t *testing.T) {
	if !inside(t) {
		return
	}
	w := newWorld(t, map[string]byte{"north": northNumber})
	pin := w.pins["east"]
	pin.Quota.Exports = 2 * manyExports
	w.pins["east"] = pin
	w.west.write("pins.yaml", string(w.pins.Encode()))
	k := w.keyholder(origin("mallory", "x"), "")
	to := []clustermesh.Origin{origin("west", "n1"), origin("east", "n1"), origin("north", "n1")}
	defer k.joins(to...)()
	// So often that a lie comes before the truth whenever a daemon forgets whom it asked.
	defer during(time.Millisecond, func(n int) {
		lies := falseOffers(n)
		for _, o := range to {
			k.says(o, &replica.Announce{Offers: lies})
			if n%200 == 0 {
				k.says(o, vectorOf(lies))
			}
		}
	})()
	asks := func(o clustermesh.Origin) {
		t.Helper()
		testutil.Eventually(t, patience, func() error {
			if _, asked := k.asked.Load(o); !asked {
				return fmt.Errorf("%s does not ask the attacker for what it offers, so this shows nothing", o)
			}
			return nil
		})
	}
	asks(to[0])
	asks(to[1])
	w.east.write("manifests/many.yaml", manyServices())
	w.west.hears("east", 1+manyExports)
	w.east.write("manifests/other.yaml", strings.ReplaceAll(manifestServe(pod(eastNumber)), "serve", "other"))
	w.west.hears("east", 2+manyExports)

	// At first, the new machine hears the attacker alone, which then tells it of the others.
	north := w.member("north", northNumber)
	north.config = map[string]any{"gossip": map[string]any{"bind": gossipOf(northNumber), "keyFile": north.path("gossip.key"), "seeds": []string{gossipOf(mallory).String()}}}
	north.start()
	asks(to[2])
	defer k.introduces(westNumber, eastNumber, northNumber)()
	north.hears("east", 2+manyExports)
	north.balances(pod(eastNumber))
	w.east.write("manifests/serve.yaml", manifestServe(moved))
	north.balances(pod(eastNumber), moved)
	w.west.balances(pod(eastNumber), moved)
	for _, m := range []*member{w.west, w.east, north} {
		m.saysNot("STR2403") // that another daemon publishes its record
	}
}

// manyServices are Services that are exported, and have no pods.
func manyServices() string {
	var out strings.Builder
	for n := range manyExports {
		name := fmt.Sprintf("%s-%04d", strings.Repeat("long", 14), n)
		fmt.Fprintf(&out, "---\napiVersion: multicluster.x-k8s.io/v1beta1\nkind: ServiceExport\nmetadata: {name: %s}\n", name)
		fmt.Fprintf(&out, "---\napiVersion: v1\nkind: Service\nmetadata: {name: %s}\nspec: {ports: [{name: http, port: 80}]}\n", name)
	}
	return out.String()
}

// falseOffers offers a record of each origin that is newer than the true one can be, and some of nodes that
// do not exist.
func falseOffers(n int) (out []replica.Offer) {
	at := time.Now().Add(5 * time.Minute)
	for _, c := range []string{"west", "east", "north"} {
		out = append(out,
			replica.Offer{Origin: origin(c, ""), Version: replica.Version{Epoch: uint64(at.UnixMilli()), Count: 1 << 40}},
			replica.Offer{Origin: origin(c, "n1"), Version: replica.Version{Epoch: uint64(at.UnixNano()), Count: 1 << 40}},
			replica.Offer{Origin: origin(c, fmt.Sprint("x", n)), Version: replica.Version{Epoch: uint64(at.UnixNano()), Count: 1}},
		)
	}
	return out
}

// vectorOf is what a daemon says that has only these.
func vectorOf(offers []replica.Offer) *replica.Vector {
	by := map[clustermesh.ClusterName][]replica.Offer{}
	for _, o := range offers {
		by[o.Origin.Cluster] = append(by[o.Origin.Cluster], o)
	}
	out := &replica.Vector{}
	for c, o := range by {
		out.Clusters = append(out.Clusters, replica.ClusterVector{Cluster: c, Offers: o})
	}
	return out
}
