// Command image packs a folder into a container image, without Docker:
//
//	go run ./install/image -o strait.tar -name localhost/strait:dev -root DIR -entrypoint /straitd
//
// A node loads the file with `ctr -n k8s.io images import strait.tar`.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"

	"strait.io/strait/install/image/oci"
)

// list is a flag that can be given more than once.
type list []string

func (l *list) String() string     { return strings.Join(*l, " ") }
func (l *list) Set(s string) error { *l = append(*l, s); return nil }

func main() {
	var image oci.Image
	flag.Var((*list)(&image.Names), "name", "image reference; can be repeated")
	flag.Var((*list)(&image.Entrypoint), "entrypoint", "program to run; repeat the flag for each of its arguments")
	flag.Var((*list)(&image.Cmd), "cmd", "default argument; can be repeated")
	flag.Var((*list)(&image.Env), "env", "NAME=VALUE; can be repeated")
	flag.StringVar(&image.Root, "root", "", "folder that becomes the root of the image")
	flag.StringVar(&image.Arch, "arch", runtime.GOARCH, "architecture of the programs in it: amd64 or arm64")
	flag.StringVar(&image.User, "user", "", "user and group to run as, as numbers: 65532:65532")
	flag.BoolVar(&image.Gzip, "gzip", true, "compress")
	out := flag.String("o", "image.tar", "file to write")
	flag.Parse()
	digest, err := oci.Write(*out, image)
	if err != nil {
		fmt.Fprintf(os.Stderr, "image: %v\n", err)
		os.Exit(1)
	}
	fmt.Printf("%s holds %s, digest %s\n", *out, strings.Join(image.Names, ", "), digest)
}
