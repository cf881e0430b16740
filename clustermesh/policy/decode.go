package policy

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// maxDocuments bounds the policies of a file.
const maxDocuments = 1000

// Decode reads the policies of a file: YAML with any number of documents, or JSON. Decoding is
// strict. It returns all mistakes at once, each with the policy and the path of its field.
func Decode(text []byte) (out []Policy, err error) {
	r := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	var errs []error
	for n := 1; ; n++ {
		doc, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read policies: %w", err)
		}
		if len(bytes.TrimSpace(doc)) == 0 {
			continue
		}
		if len(out) == maxDocuments {
			return nil, fmt.Errorf("read policies: there are more than %d", maxDocuments)
		}
		var p Policy
		if err := yaml.UnmarshalStrict(doc, &p); err != nil {
			errs = append(errs, fmt.Errorf("document %d: %w", n, err))
			continue
		}
		for _, mistake := range Validate(p) {
			errs = append(errs, fmt.Errorf("%s %q: %w", Kind, p.Name, mistake))
		}
		if slices.ContainsFunc(out, func(q Policy) bool { return q.Name == p.Name }) {
			errs = append(errs, fmt.Errorf("%s %q: there are two of this name", Kind, p.Name))
		}
		out = append(out, p)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return out, nil
}

// Encode returns policies as YAML that Decode reads.
func Encode(ps []Policy) ([]byte, error) {
	var out bytes.Buffer
	for i, p := range ps {
		if i > 0 {
			out.WriteString("---\n")
		}
		text, err := yaml.Marshal(p)
		if err != nil {
			return nil, err
		}
		out.Write(text)
	}
	return out.Bytes(), nil
}
