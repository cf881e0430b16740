// Command push pushes what a layout holds, such as dist/oci of a release, to a registry:
//
//	go run ./install/image/push -registry registry.example/team dist/oci
//
// Each entry keeps its name below the registry: registry.example/team/strait:v0.1.0. Credentials are those
// that `docker login` or `helm registry login` stored. It must not know what the entries are.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"strait.io/strait/install/image/oci"
)

func main() {
	registry := flag.String("registry", "", "the registry, and the path in it: registry.example/team")
	plain := flag.Bool("plain-http", false, "speak HTTP; with a registry on this machine, it does anyway")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := push(ctx, os.Stdout, flag.Arg(0), *registry, *plain)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "push: %v\n", err)
		os.Exit(1)
	}
}

// push pushes all entries of a layout. What the registry has already is not sent again.
func push(ctx context.Context, out io.Writer, dir, registry string, plain bool) error {
	if registry == "" || dir == "" {
		return fmt.Errorf("it needs a layout and a registry: make push REGISTRY=registry.example/team")
	}
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return fmt.Errorf("read layout %s: %w; make release writes it", dir, err)
	}
	entries, err := index.IndexManifest()
	if err != nil {
		return fmt.Errorf("read layout %s: %w", dir, err)
	}
	if len(entries.Manifests) == 0 {
		return fmt.Errorf("read layout %s: index.json lists nothing; make release writes it", dir)
	}
	for _, e := range entries.Manifests {
		ref, err := reference(registry, e.Annotations[oci.RefName], plain)
		if err != nil {
			return fmt.Errorf("read layout %s: entry %s: %w", dir, e.Digest, err)
		}
		if err := send(ctx, ref, index, e); err != nil {
			return fmt.Errorf("push %s: %w", ref, err)
		}
		fmt.Fprintf(out, "%s@%s\n", ref, e.Digest)
	}
	return nil
}

// reference returns where an entry goes.
func reference(registry, entry string, plain bool) (name.Reference, error) {
	if entry == "" {
		return nil, fmt.Errorf("it has no annotation %s", oci.RefName)
	}
	options := []name.Option{name.StrictValidation}
	if plain {
		options = append(options, name.Insecure)
	}
	return name.NewTag(path.Join(registry, entry), options...)
}

func send(ctx context.Context, ref name.Reference, layout v1.ImageIndex, e v1.Descriptor) error {
	options := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
	if e.MediaType.IsIndex() {
		index, err := layout.ImageIndex(e.Digest)
		if err != nil {
			return err
		}
		return remote.WriteIndex(ref, index, options...)
	}
	image, err := layout.Image(e.Digest)
	if err != nil {
		return err
	}
	return remote.Write(ref, image, options...)
}
