package kube

import (
	"context"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"strait.io/strait/clustermesh/object"
)

const (
	// rediscover is how often the API server is asked which custom resources it serves, and missing
	// is how often while one that strait needs is missing.
	rediscover = 30 * time.Second
	missing    = 5 * time.Second
	// sure is how long the API server must have said that a kind does not exist before that counts
	// as "no objects": an API server that is starting may not know its custom resources yet.
	sure = 8 * time.Second
)

// discover starts the watch of each custom resource once the API server serves it.
func (s *Source) discover(ctx context.Context, start func(func())) {
	running := map[string]bool{}
	for {
		pause := rediscover
		for _, k := range object.Kinds {
			if !k.Custom || running[k.Resource] {
				continue
			}
			version, found, err := s.servedVersion(ctx, k)
			w := s.watches[k.Resource]
			w.attempted(ctx, err)
			switch {
			case ctx.Err() != nil:
				return
			case err != nil:
				pause = firstPause
			case !found:
				w.served(false)
				if k.Need != object.Optional {
					pause = min(pause, missing)
				}
			default:
				w.served(true)
				running[k.Resource] = true
				s.log.Debug("watching", "resource", k.Resource, "version", version.Name)
				start(func() { w.run(ctx, s.cfg.Client, version) })
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// servedVersion returns the best version of a kind that the API server serves; false if it serves
// none.
func (s *Source) servedVersion(ctx context.Context, k object.Kind) (object.Version, bool, error) {
	for _, v := range k.Versions {
		if v.FilesOnly {
			continue
		}
		list, err := s.cfg.Client.discovery.ServerResourcesForGroupVersionWithContext(ctx, k.GroupVersion(v).String())
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
