// Command sbom writes an image's bill of materials (CycloneDX) from those of its programs:
//
//	go run ./install/image/sbom -image strait.tar -o strait.cdx.json straitd.cdx.json strait.cdx.json
//
// The image is scratch, so its programs are all that it holds.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	"strait.io/strait/install/image/bom"
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
	var programs [][]byte
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		programs = append(programs, text)
	}
	text, err := bom.Compose(name, digest, programs)
	if err != nil {
		return fmt.Errorf("compose %s: %w", strings.Join(files, ", "), err)
	}
	return os.WriteFile(out, text, 0o644)
}
