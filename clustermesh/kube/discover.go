package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"strait.io/strait/clustermesh/object"
)

const (
	// rediscover is how often the API server is asked which custom resources it serves, and missing
	// is how often while one that strait needs is missing.
	rediscover = 30 * time.Second
	missing    = 5 * time.Second
	// sure is how long the API server must have answered that a kind does not exist before that counts
	// as "no objects": an API server that is starting may not know its custom resources yet.
	sure = 8 * time.Second
	// resourcesWithin bounds a request for what is served, as client-go's own discovery does.
	resourcesWithin = 32 * time.Second
)

// running is the watch of one version of a kind.
type running struct {
	version object.Version
	stop    func() // returns when the watch has ended
}

// discover starts the watch of each custom resource once the API server serves it. When the best
// version that is served changes, the watch goes on with that one. What was read before stays until
// the new version's objects have been read.
func (s *Source) discover(ctx context.Context, start func(func())) {
	watching := map[string]running{}
	for {
		pause := rediscover
		for _, k := range object.Kinds {
			if !k.Custom {
				continue
			}
			now, is := watching[k.Resource]
			if is {
				if s.watches[k.Resource].lost() {
					pause = min(pause, missing)
				} else if now.version.Name == k.Versions[0].Name {
					continue // every node would ask about every kind
				}
			}
			version, found, again := s.lookFor(ctx, k, is)
			if ctx.Err() != nil {
				return
			}
			pause = min(pause, again)
			if found && (!is || version.Name != now.version.Name) {
				watching[k.Resource] = s.follow(ctx, k, version, now, start)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-s.lost:
		case <-time.After(pause):
		}
	}
}

// lookFor returns the best version of a kind that the API server serves, and when to ask again. The
// state of a watch that runs is its own, and is not touched.
func (s *Source) lookFor(ctx context.Context, k object.Kind, runs bool) (v object.Version, found bool, again time.Duration) {
	v, found, err := s.servedVersion(ctx, k)
	w := s.watches[k.Resource]
	if !runs {
		w.attempted(ctx, err)
	}
	switch {
	case ctx.Err() != nil:
		return v, false, rediscover
	case err != nil && runs:
		return v, false, missing
	case err != nil:
		return v, false, firstPause
	case !found && !runs:
		w.served(false)
		if k.Need != object.Optional {
			return v, false, missing
		}
	case found:
		w.served(true)
	}
	return v, found, rediscover
}

// follow watches a version of a kind, in place of the one that was watched, if there is one.
func (s *Source) follow(ctx context.Context, k object.Kind, v object.Version, was running, start func(func())) running {
	if was.stop != nil {
		s.log.Info("another version is served", "resource", k.Resource, "version", v.Name, "was", was.version.Name)
		was.stop()
	}
	s.log.Debug("watching", "resource", k.Resource, "version", v.Name)
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	start(func() {
		defer close(done)
		s.watches[k.Resource].run(ctx, s.cfg.Client, v)
	})
	return running{v, func() {
		cancel()
		<-done
	}}
}

// servedVersion returns the best version of a kind that the API server serves; false if it serves
// none.
func (s *Source) servedVersion(ctx context.Context, k object.Kind) (object.Version, bool, error) {
	for _, v := range k.Versions {
		list, err := s.cfg.Client.resources(ctx, k.GroupVersion(v))
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return v, false, err
		}
		if slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == k.GroupResource().Resource }) {
			return v, true, nil
		}
	}
	return object.Version{}, false, nil
}

// resources returns what the API server serves of a group's version. IsNotFound is true of the
// error if it serves nothing of it.
func (c Client) resources(ctx context.Context, gv schema.GroupVersion) (out metav1.APIResourceList, err error) {
	ctx, cancel := context.WithTimeout(ctx, resourcesWithin)
	defer cancel()
	raw, err := c.builtin.REST().Get().AbsPath("apis", gv.Group, gv.Version).SetHeader("Accept", runtime.ContentTypeJSON).Do(ctx).Raw()
	if err != nil {
		return out, err
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		return out, fmt.Errorf("decode the resources of %s: %w", gv, err)
	}
	return out, nil
}
