// Package bom composes the bill of materials (CycloneDX) of an image from those of its programs.
//
// Inputs are what cyclonedx-gomod writes about programs; output is a document. It must not know how
// images are built.
package bom

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// bom is the part of a CycloneDX document that is needed to compose documents.
type bom struct {
	Schema       string       `json:"$schema"`
	Format       string       `json:"bomFormat"`
	Spec         string       `json:"specVersion"`
	Version      int          `json:"version"`
	Metadata     metadata     `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

type metadata struct {
	Tools      json.RawMessage `json:"tools,omitempty"`
	Component  component       `json:"component"`
	Properties []property      `json:"properties,omitempty"`
}

// component has all fields that cyclonedx-gomod writes; what is not decided on stays as it is.
type component struct {
	Ref        string          `json:"bom-ref"`
	Type       string          `json:"type"`
	Name       string          `json:"name"`
	Version    string          `json:"version"`
	Scope      string          `json:"scope,omitempty"`
	Hashes     []hash          `json:"hashes,omitempty"`
	Purl       string          `json:"purl,omitempty"`
	External   json.RawMessage `json:"externalReferences,omitempty"`
	Licenses   json.RawMessage `json:"licenses,omitempty"`
	Evidence   json.RawMessage `json:"evidence,omitempty"`
	Properties []property      `json:"properties,omitempty"`
}

type hash struct {
	Alg     string `json:"alg"`
	Content string `json:"content"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type dependency struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn,omitempty"`
}

// What cyclonedx-gomod reports about the file.
const (
	fileName = "cdx:gomod:binary:name"
	fileHash = "cdx:gomod:binary:hash:SHA-256"
)

// Compose returns the document of an image that holds the programs of the documents, and nothing
// else.
func Compose(name, digest string, documents [][]byte) ([]byte, error) {
	if len(documents) == 0 {
		return nil, errors.New("an image without programs")
	}
	var programs []bom
	for _, text := range documents {
		var b bom
		if err := json.Unmarshal(text, &b); err != nil {
			return nil, fmt.Errorf("decode a program's bill of materials: %w", err)
		}
		programs = append(programs, b)
	}
	text, err := json.MarshalIndent(compose(name, digest, programs), "", "  ")
	return append(text, '\n'), err
}

// compose returns the document of an image that holds the programs, and nothing else.
func compose(name, digest string, programs []bom) bom {
	out := programs[0]
	out.Components, out.Dependencies = nil, nil
	out.Metadata.Properties = nil
	out.Metadata.Component = component{
		Ref: name + "@" + digest, Type: "container", Name: name, Version: digest,
		Hashes: []hash{{"SHA-256", strings.TrimPrefix(digest, "sha256:")}},
	}
	image := dependency{Ref: out.Metadata.Component.Ref}
	known := map[string]bool{}
	for _, p := range programs {
		program := p.Metadata.Component
		for _, x := range p.Metadata.Properties {
			switch x.Name {
			case fileName:
				program.Name = x.Value
			case fileHash:
				program.Hashes = []hash{{"SHA-256", x.Value}}
			}
		}
		image.DependsOn = append(image.DependsOn, program.Ref)
		for _, c := range append([]component{program}, p.Components...) {
			if !known[c.Ref] {
				known[c.Ref] = true
				out.Components = append(out.Components, c)
			}
		}
		for _, d := range p.Dependencies {
			if !slices.ContainsFunc(out.Dependencies, func(has dependency) bool { return has.Ref == d.Ref }) {
				out.Dependencies = append(out.Dependencies, d)
			}
		}
	}
	slices.SortFunc(out.Components, func(a, b component) int { return cmp.Compare(a.Ref, b.Ref) })
	slices.SortFunc(out.Dependencies, func(a, b dependency) int { return cmp.Compare(a.Ref, b.Ref) })
	out.Dependencies = append([]dependency{image}, out.Dependencies...)
	return out
}
