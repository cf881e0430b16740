// Command dist writes a release into a folder, from programs that make has built. It decides
// nothing: package release says what a release consists of.
//
// Inputs are the programs, their bills of materials, completions and manual pages below
// bin/release, the chart, README.md, LICENSE and CHANGELOG.md; output is dist/. It must not know
// how programs are built, nor registries.
package main

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"time"

	"aead.dev/minisign"

	"strait.io/strait/install/release"
)

// options are what make gives.
type options struct {
	release.Release
	platforms string
	built     string // the folder with what make has built
	out       string
	key       *minisign.PrivateKey // nil if the release is not signed
	history   release.History
}

func main() {
	var o options
	flag.StringVar(&o.Version, "version", "", "the tag: v0.1.0")
	flag.StringVar(&o.Revision, "revision", "", "the commit")
	flag.StringVar(&o.Registry, "registry", "", "where the image and the chart will be")
	flag.StringVar(&o.URL, "url", "", "where the files can be downloaded")
	flag.StringVar(&o.platforms, "platforms", "", "what programs were built for: linux/amd64 darwin/arm64")
	flag.StringVar(&o.built, "built", "bin/release", "folder of what was built")
	flag.StringVar(&o.out, "o", "dist", "folder to write")
	key := flag.String("key", "", "file of the key of minisign to sign with")
	flag.StringVar(&o.history.Since, "since", "", "the tag of the release before")
	subjects := flag.String("subjects", "", "file with the subjects of the commits since then")
	check := flag.Bool("check", false, "only say whether there can be such a release")
	flag.Parse()
	if err := run(o, *key, *subjects, *check); err != nil {
		fmt.Fprintf(os.Stderr, "make release: %v\n", err)
		os.Exit(1)
	}
}

func run(o options, key, subjects string, check bool) error {
	seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
	}
	o.Time = time.Unix(seconds, 0).UTC()
	if err := o.Check(); err != nil {
		return err
	}
	platforms, err := release.Platforms(o.platforms)
	if err != nil {
		return err
	}
	if key != "" {
		read, err := readKey(key, os.Getenv("RELEASE_KEY_PASSWORD"))
		if err != nil {
			return err
		}
		o.key = &read
	}
	changelog, err := os.ReadFile("CHANGELOG.md")
	if err != nil {
		return err
	}
	changes, err := o.Section(string(changelog))
	if err != nil {
		return err
	}
	if check {
		return nil
	}
	if o.history.Subjects, err = lines(subjects); err != nil {
		return err
	}
	return assemble(o, platforms, changes)
}
