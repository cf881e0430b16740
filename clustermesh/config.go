package clustermesh

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ConfigObject is an object of a cluster's API server that clusters which accept the cluster's
// configuration carry out as if it were theirs.
type ConfigObject struct {
	// Kind is as in Problems: "MultiClusterService.networking.gke.io". Unknown kinds do nothing.
	Kind string      `cbor:"1,keyasint" json:"kind"`
	Name ServiceName `cbor:"2,keyasint" json:"name"`
	// Annotations are those that count, and Spec is JSON.
	Annotations map[string]string `cbor:"3,keyasint,omitempty" json:"annotations,omitempty"`
	Spec        string            `cbor:"4,keyasint" json:"spec"`
	// Created is the object's creation time in Unix seconds.
	Created int64 `cbor:"5,keyasint,omitempty" json:"created,omitempty"`
}

const (
	// MaxConfigObjects bounds the objects of a record: GKE's own limit is 100 of each kind.
	MaxConfigObjects = 256
	// maxConfigSpec, maxAnnotations and maxAnnotation bound one object, and maxConfig what
	// all of a record do: it is gossiped as a whole.
	maxConfigSpec  = 16 << 10
	maxAnnotations = 64
	maxAnnotation  = 4 << 10
	maxConfig      = 512 << 10
)

// Equal reports whether two objects are identical.
func (c ConfigObject) Equal(o ConfigObject) bool {
	return c.Kind == o.Kind && c.Name == o.Name && maps.Equal(c.Annotations, o.Annotations) && c.Spec == o.Spec && c.Created == o.Created
}

// Check returns an error unless a record can carry an object.
func (c ConfigObject) Check() error {
	if c.Kind == "" {
		return errors.New("it has no kind")
	}
	if err := errors.Join(CheckText(c.Kind, MaxName), c.Name.Check()); err != nil {
		return err
	}
	if len(c.Spec) > maxConfigSpec || !strings.HasPrefix(c.Spec, "{") || !json.Valid([]byte(c.Spec)) {
		return fmt.Errorf("spec: its %d bytes are no JSON object of at most %d", len(c.Spec), maxConfigSpec)
	}
	if len(c.Annotations) > maxAnnotations {
		return fmt.Errorf("%d annotations exceed the limit of %d", len(c.Annotations), maxAnnotations)
	}
	for k, v := range c.Annotations {
		if err := CheckText(k, maxQualified); err != nil || len(v) > maxAnnotation {
			return fmt.Errorf("annotation %s is too long, or cannot be printed", Quoted(k))
		}
	}
	return nil
}

func (c ConfigObject) size() int {
	n := len(c.Kind) + len(c.Name.Namespace) + len(c.Name.Name) + len(c.Spec)
	for k, v := range c.Annotations {
		n += len(k) + len(v)
	}
	return n
}

// FitConfig returns the objects that a record can carry, and those that it cannot, with the reason.
// The first fit first.
func FitConfig(all []ConfigObject) (fit []ConfigObject, rest map[int]error) {
	total, rest := 0, map[int]error{}
	for i, c := range all {
		err := c.Check()
		switch size := c.size(); {
		case err != nil:
		case len(fit) == MaxConfigObjects || total+size > maxConfig:
			err = fmt.Errorf("a cluster's record carries at most %d objects, and %d KiB of them", MaxConfigObjects, maxConfig>>10)
		default:
			fit, total = append(fit, c), total+size
		}
		if err != nil {
			rest[i] = err
		}
	}
	return fit, rest
}

// ClusterConfig is the configuration of a cluster from which it is accepted.
type ClusterConfig struct {
	Cluster ClusterName
	Objects []ConfigObject
}

// Equal reports whether both are the same.
func (c ClusterConfig) Equal(o ClusterConfig) bool {
	return c.Cluster == o.Cluster && slices.EqualFunc(c.Objects, o.Objects, ConfigObject.Equal)
}

// Config returns the configuration of the clusters from which it is accepted, in the order of the list. A cluster
// of which no record is here is unknown: it has objects, or none.
func (s State) Config(from []ClusterName) (said []ClusterConfig, unknown []ClusterName) {
	for _, c := range from {
		r, known := s.Records.Lookup(Origin{Cluster: c})
		if known {
			said = append(said, ClusterConfig{c, r.Content.Config})
		} else {
			unknown = append(unknown, c)
		}
	}
	return said, unknown
}
