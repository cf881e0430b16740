// Command sbom writes an image's bill of materials (CycloneDX) from those of its programs:
//
//	go run ./install/image/sbom -image strait.tar -o strait.cdx.json straitd.cdx.json strait.cdx.json
//
// The image is scratch, so its programs are all that it holds.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"

	"strait.io/strait/install/image/oci"
)

func main() {
	image := flag.String("image", "", "the image's file, as install/image writes it")
	out := flag.String("o", "", "file to write")
	flag.Parse()
	if err := run(*image, *out, flag.Args()); err != nil {
		fmt.Fprintf(os.Stderr, "sbom: %v\n", err)
		os.Exit(1)
	}
}

func run(image, out string, files []string) error {
	if image == "" || out == "" || len(files) == 0 {
		return errors.New("it needs -image, -o and the programs' bills of materials")
	}
	name, digest, err := oci.Identify(image)
	if err != nil {
		return err
	}
	var programs []bom
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		var b bom
		if err := json.Unmarshal(text, &b); err != nil {
			return fmt.Errorf("decode %s: %w", f, err)
		}
		programs = append(programs, b)
	}
	text, err := json.MarshalIndent(compose(name, digest, programs), "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(out, append(text, '\n'), 0o644)
}
