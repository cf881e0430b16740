package check

import (
	"fmt"
	"maps"
	"slices"

	"strait.io/strait/daemon/api"
	"strait.io/strait/internal/version"
)

// Upgrade is what an upgrade of a cluster would meet, and what it would change.
type Upgrade struct {
	// To is the version that would be installed.
	To string
	// Nodes are the cluster's daemons.
	Nodes []Node
	// Others are the versions of the daemons of other clusters, by CLUSTER/NODE; empty if not
	// known.
	Others map[string]string
	// Image is the reference that would be run, and Pinned true if an earlier command set its tag
	// or digest, which then stays.
	Image  string
	Pinned bool
	// Refused is why the chart does not take the values, or the API server an object; nil if both
	// do.
	Refused error
	// ByHand are workloads that would change and whose pods are not replaced by that.
	ByHand []string
}

// UpgradeChecks makes the checks before an upgrade: what is in its way, and what it puts at risk.
func UpgradeChecks(u Upgrade) []Check {
	c := upgradeChecker{checker{nodes: u.Nodes, client: u.To}, u}
	c.versions()
	c.objects()
	c.now()
	return c.checks
}

type upgradeChecker struct {
	checker
	Upgrade
}

func (c *upgradeChecker) versions() {
	const category = "versions"
	c.add(category, fmt.Sprintf("%s follows the version of every daemon", c.To), c.each(func(_ Node, s *api.Status) []Finding { return step(s.Version, c.To) })...)
	most := c.mostCommonVersion()
	c.add(category, "the last upgrade has reached every daemon", c.each(func(_ Node, s *api.Status) []Finding {
		if s.Version == most {
			return nil
		}
		return found(Warning, "wait for the last upgrade, or finish it, before this one", "straitd is %s, and most others are %s", s.Version, most)
	})...)
	c.add(category, fmt.Sprintf("the daemons of other clusters work with %s", c.To), c.others()...)
}

// step finds what is against going from one version to another.
func step(from, to string) []Finding {
	switch version.Between(from, to) {
	case version.Unknown:
		return found(Warning, "try it in a cluster for tests; releases have versions such as v0.2.0", "from %s to %s: one is no release, so nothing is promised", from, to)
	case version.Far:
		return found(Failed, fmt.Sprintf("upgrade to %s first, with the strait of that release", version.After(from)),
			"%s is more than one minor version after %s", to, from)
	case version.Back:
		return found(Warning, "see the release notes of both", "%s is older than %s: what only the newer one has stops", to, from)
	case version.FarBack:
		return found(Failed, "use the strait of a release that is at most one minor version older", "%s is more than one minor version before %s", to, from)
	}
	return nil
}

// others finds the daemons of other clusters that would not work with the new version.
func (c *upgradeChecker) others() (out []Finding) {
	for _, name := range slices.Sorted(maps.Keys(c.Others)) {
		has := c.Others[name]
		works, known := version.Between(has, c.To).Works()
		var f []Finding
		switch {
		case has == "":
			f = found(Warning, "see its version: strait version --context NAME", "its daemon does not publish its version")
		case !known:
			f = found(Warning, "bring all clusters to releases", "its daemon is %s: one is no release, so nothing is promised", has)
		case !works:
			f = found(Failed, "upgrade that cluster first", "its daemon is %s: more than one minor version from %s", has, c.To)
		}
		for i := range f {
			f[i].Nodes = []string{name}
		}
		out = append(out, f...)
	}
	return out
}

func (c *upgradeChecker) objects() {
	const category = "objects"
	var refused, pinned, byHand []Finding
	if c.Refused != nil {
		refused = found(Failed, "correct the value with --set, or discard all with --reset-values", "%v", c.Refused)
	}
	c.add(category, "the chart takes the values, and the API server the objects", refused...)
	if c.Pinned {
		pinned = found(Warning, "name the image of this version: --image REPOSITORY:TAG or REPOSITORY@DIGEST", "the image stays at %s, as set earlier", c.Image)
	}
	c.add(category, "the image is that of the new version", pinned...)
	for _, name := range c.ByHand {
		byHand = append(byHand, found(Warning, "replace them node by node, when it suits; packets wait meanwhile: upgrade prints how",
			"the pods of %s change, and go on as before", name)...)
	}
	c.add(category, "all pods are replaced by the upgrade", byHand...)
}

// now checks whether the cluster is well as it is. What is wrong before an upgrade is wrong after
// it, and hard to tell from what the upgrade did.
func (c *upgradeChecker) now() {
	const category = "now"
	c.add(category, "every daemon answers", c.silent()...)
	c.add(category, "every daemon is ready", c.notReady()...)
	c.problems()
}
