package kube

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/object"
	"strait.io/strait/internal/problem"
)

// away is how long the API server may be away before that is a Problem. API servers restart now and
// then.
const away = 10 * time.Second

// settled reports whether everything needed has been read: a kind that has not been read must not
// be taken for empty.
func settled(states []state, now time.Time) bool {
	for _, s := range states {
		if !s.settled(now) {
			return false
		}
	}
	return true
}

func (s state) settled(now time.Time) bool {
	switch {
	case s.synced:
		return true
	case !s.absent.IsZero():
		return s.kind.Need == object.Optional || now.Sub(s.absent) >= sure
	}
	return s.kind.Need != object.Required && apierrors.IsForbidden(s.err)
}

// silence reports since when the API server at host has not answered, and why. err is nil while it
// answers.
type silence struct {
	host  string
	err   error
	since time.Time
}

// problems returns what is wrong with the watches.
func problems(states []state, down silence, now time.Time) (out []clustermesh.Problem) {
	known := true
	for _, s := range states {
		known = known && (s.synced || s.kind.Need != object.Required)
		switch {
		case !s.absent.IsZero():
			if s.kind.Need != object.Optional {
				out = append(out, absentProblem(s))
			}
		case s.err == nil:
		case apierrors.IsForbidden(s.err):
			out = append(out, forbiddenProblem(s))
		case apierrors.IsNotFound(s.err) && s.kind.Custom:
			if s.kind.Need != object.Optional {
				out = append(out, absentProblem(s))
			}
		case down.err == nil || s.since.Before(down.since):
			down.err, down.since = s.err, s.since
		}
	}
	if down.err != nil && now.Sub(down.since) >= away {
		out = append(out, awayProblem(down, known))
	}
	return out
}

func absentProblem(s state) clustermesh.Problem {
	var versions []string
	for _, v := range s.kind.Versions {
		versions = append(versions, v.Name)
	}
	return problem.Object("CustomResourceDefinition", "", s.kind.Resource).Problem(clustermesh.Problem{
		Code:    problem.TypeMissing,
		Message: fmt.Sprintf("the API server does not serve %s in version %s: %s", s.kind.Resource, strings.Join(versions, " or "), s.kind.Missing),
		Try:     s.kind.Install,
	})
}

func forbiddenProblem(s state) clustermesh.Problem {
	p := problem.Named("access to", s.kind.Resource).Problem(clustermesh.Problem{
		Code:    problem.ReadForbidden,
		Message: s.err.Error(),
		Try:     "reapply strait's ClusterRole and its binding: run strait upgrade, or apply the manifests of this version",
	})
	switch {
	case s.synced:
		p.Message += ": the last state that was read stays in force"
	case s.kind.Need == object.Required:
		p.Message += ": the cluster's objects are unknown, so nothing is announced or withdrawn"
	default:
		p.Warning = true
	}
	return p
}

func awayProblem(s silence, known bool) clustermesh.Problem {
	cause := s.err
	var u *url.Error
	if errors.As(cause, &u) {
		cause = u.Err // without the long address of the request
	}
	then := "the last state that was read stays in force"
	if !known {
		then = "the cluster's objects are unknown, so nothing is announced or withdrawn"
	}
	return problem.Named("API server", s.host).Problem(clustermesh.Problem{
		Code:    problem.APIServerSilent,
		Message: fmt.Sprintf("reads have failed since %s (%v): %s", s.since.UTC().Format(time.TimeOnly+"Z"), cause, then),
		Try:     "check that it is running and that this node can reach it; strait then recovers by itself",
	})
}
