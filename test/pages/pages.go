// Package pages reads the Markdown pages of the repository, so that tests can execute the commands
// in them and check what they link to.
//
// A code block is fenced and says its language. A block of commands (sh, console) follows a comment
// that says which test executes it, or why none does:
//
//	<!-- run: kube -->
//	<!-- example: needs a registry -->
//
// In sh each line is part of one shell script. In console, lines that begin with the prompt "# "
// are commands, and the others are their output.
package pages

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

// The suites that execute blocks. Each has a test that executes all blocks with its name.
const (
	Kube = "kube" // test/kube: two clusters, with contexts c1 and c2
	Demo = "demo" // test/e2e: a demo that was left up
	// test/install: kubeconfigs of two clusters without strait, and the file of the page
	Replicate = "replicate"
	Watch     = "watch" // the same; the command runs until it is interrupted
	// test/kube: two clusters with strait, with contexts c1 and c2
	EKS = "eks"
	// test/kube: the same, and a namespace whereami with an app of that name
	GKE = "gke"
	// test/kube: two clusters with strait, with contexts and cluster ids c1 and c2, and in c1 a Service
	// important-service
	Kilo = "kilo"
	// test/e2e: a demo that was left up, and a machine without strait beside it. The test says which of
	// the two each block is for
	Laptop = "laptop"
	// test/kube: the same machine, beside two clusters with strait, with contexts c1 and c2
	Peers = "peers"
	// test/kube: the same, with a namespace shop. Nothing is left to do there: the commands are those that
	// join clusters. Other names of clusters stand for c1 and c2
	Joined = "joined"
	// test/kube: two clusters with strait, with contexts c1 and c2, and $NAMESPACE with an exported
	// Service hello
	Istio = "istio"
	// test/kube: two clusters with strait, with contexts c1 and c2, and the page's file fall-through.yaml
	Kubernetai = "kubernetai"
	// test/kube: two clusters with strait, with contexts and cluster ids c1 and c2
	Submariner = "submariner"
	// test/kube: the same, with a node c2n2, and a person who agrees. The test chooses the order
	Authority = "authority"
	// test/kube: the same, as a person who has only the Role strait-view-reader. The page says what happened
	// before; the test puts the time at which it did in the place of 14:02
	Questions = "questions"
	// test/kube: a copy of install/examples/gitops, and two clusters without strait, with contexts
	// c1 and c2. The test makes the changes to files that the page describes
	GitOps = "gitops"
	// test/redteam: running daemons of two clusters, of which rack2 is one, and its machine n3. Tests
	// copy files between the commands, as the block's comments say
	RedTeam = "redteam"
	// test/kube: two clusters without strait, with contexts c1 and c2, and a machine that has Helm,
	// kubectl, a shell and nothing else. The test names its registry, its versions and its images
	// instead of those of the page
	Bare = "bare"
	// test/supply: a folder with a release, and strait.pub, the key that it was signed with
	Release = "release"
)

// Suites are all suites.
var Suites = []string{Kube, Demo, Replicate, Watch, EKS, GKE, Kilo, Laptop, Peers, Joined, Istio, Kubernetai, Submariner, Authority, Questions, GitOps, Bare, RedTeam, Release}

// Page is one Markdown file.
type Page struct {
	Path string // relative to the repository
	Text string
}

// Block is one fenced code block.
type Block struct {
	Page string
	Line int // of the opening fence, from 1
	Lang string
	// Run is the suite that executes the block; Example is why none does.
	Run, Example string
	Text         string
}

// Place names the block for people.
func (b Block) Place() string { return fmt.Sprintf("%s:%d", b.Page, b.Line) }

// Command reports whether the block holds commands.
func (b Block) Command() bool { return b.Lang == "sh" || b.Lang == "console" }

// Headers returns the header rows of the tables in the block's output.
func (b Block) Headers() (out [][]string) {
	for line := range strings.Lines(b.Text) {
		if words := strings.Fields(line); len(words) > 3 && !strings.HasPrefix(line, "# ") && line == strings.ToUpper(line) {
			out = append(out, words)
		}
	}
	return out
}

// Script returns the block's commands as a shell script.
func (b Block) Script() string {
	if b.Lang != "console" {
		return b.Text
	}
	var out strings.Builder
	for line := range strings.Lines(b.Text) {
		if command, ok := strings.CutPrefix(line, "# "); ok {
			out.WriteString(command)
		}
	}
	return out.String()
}

// Load returns all pages below root, without those of folders whose name starts with a dot.
func Load(root fs.FS) (out []Page, err error) {
	err = fs.WalkDir(root, ".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && p != "." && (p == "dist" || p == "site" || d.Name()[0] == '.' || d.Name() == "testdata" || d.Name() == "bin"):
			return fs.SkipDir
		case !d.IsDir() && path.Ext(p) == ".md":
			text, err := fs.ReadFile(root, p)
			if err != nil {
				return err
			}
			out = append(out, Page{p, string(text)})
		}
		return nil
	})
	return out, err
}

var (
	fence     = regexp.MustCompile("^ *```(.*)$")
	directive = regexp.MustCompile(`^ *<!-- (run|example): (.+) -->$`)
)

// Blocks returns a page's code blocks, in order.
func Blocks(p Page) (out []Block) {
	var open *Block
	last := ""
	for i, line := range strings.Split(p.Text, "\n") {
		m := fence.FindStringSubmatch(line)
		switch {
		case m != nil && open != nil:
			out = append(out, *open)
			open = nil
		case m != nil:
			open = &Block{Page: p.Path, Line: i + 1, Lang: m[1]}
			if d := directive.FindStringSubmatch(last); d != nil && d[1] == "run" {
				open.Run = d[2]
			} else if d != nil {
				open.Example = d[2]
			}
		case open != nil:
			open.Text += line + "\n"
		}
		last = line
	}
	return out
}

// Of returns the blocks of one suite, by page and in order.
func Of(pages []Page, suite string) (out []Block) {
	for _, p := range pages {
		out = append(out, slices.DeleteFunc(Blocks(p), func(b Block) bool { return b.Run != suite })...)
	}
	return out
}
