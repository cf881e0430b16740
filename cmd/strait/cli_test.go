package main

import (
	"context"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net"
	"net/http"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"strait.io/strait/cli"
	"strait.io/strait/daemon/api"
	"strait.io/strait/datapath"
	"strait.io/strait/internal/problem"
)

var exitCases = []struct {
	name string
	// daemon is one of those that TestExitCodes starts.
	daemon, args string
	code         int
	message      string // in stdout or stderr
}{
	{"all well", "well", "status", 0, "no problems"},
	{"warnings do not count", "warning", "status", 0, "0 errors, 1 warning"},
	{"problems", "ill", "status", 1, "3 errors, 3 warnings"},
	{"problems as JSON", "ill", "status -o json", 1, `"problems"`},
	{"not ready", "notReady", "status", 1, "✗ not ready, waiting for gossip"},
	{"hooks off", "detached", "status", 1, "connections bypass strait"},
	{"no daemon", "none", "status", 3, "try  start straitd"},
	{"no plan yet", "starting", "status", 3, "strait status --wait"},
	{"no daemon, other command", "none", "nodes", 3, "there is no socket"},
	{"unknown command", "well", "frobnicate", 2, "strait --help"},
	{"misspelt command", "well", "stats", 2, "try  strait status\n"},
	{"not a socket", "file", "nodes", 3, "is not a socket"},
	{"unknown flag", "well", "status --wat", 2, "strait status --help"},
	{"unknown format", "well", "status -o xml", 2, `unknown --output "xml"; use table, wide, json, yaml or jsonpath=TEMPLATE`},
	{"too many arguments", "well", "graph a", 2, "strait graph --help"},
	{"wide form of what is no list", "well", "version -o wide", 2, `unknown --output "wide"; use table, json, yaml or`},
	{"names of what is no list", "well", "status -o name", 2, `use table, wide, json, yaml or jsonpath=TEMPLATE`},
	{"unknown format of a list", "well", "nodes -o xml", 2, `use table, wide, name, json, yaml or jsonpath=TEMPLATE`},
	{"invalid template", "well", "nodes -o jsonpath={.items", 2, "unclosed action"},
	{"template of what is not there", "well", "nodes -o jsonpath={.nothing}", 1, "nothing is not found"},
	{"template that is malformed, without a daemon", "none", "nodes -o jsonpath={", 2, "unclosed"},
	{"node that there is not", "well", "nodes us-west-n1", 1, `there is no node "us-west-n1"`},
	{"node misspelt", "well", "nodes us-east-n9", 1, "did you mean us-east/us-east-n1, us-east/us-east-n2?"},
	{"names of two services", "well", "services far default/serve -o name", 0, "default/far\ndefault/serve\n"},
	{"service of a namespace", "ill", "services -n shop refused -o name", 0, "shop/refused\n"},
	{"service of another namespace", "ill", "services -n default refused", 1, `there is no service "default/refused"`},
	{"service outside the namespace", "well", "services -n default shop/cart", 2, "is not in namespace default"},
	{"a namespace and all of them", "well", "services -n default -A", 2, "none of the others can be"},
	{"service to explain in a namespace", "well", "explain -n default serve:dns", 0, "default/serve"},
	{"service to explain in another namespace", "well", "explain -n prod serve", 1, "did you mean default/serve?"},
	{"port of a listed service", "well", "services default/serve:80", 2, "a port is not accepted here"},
	{"backends of a service that refuses", "ill", "backends -n shop refused", 0, "shop/refused [fd00::9]:80/TCP has no backend"},
	{"backends of several", "ill", "backends far refused", 0, "default/far"},
	{"nodes of a cluster", "well", "nodes eu-central -o name", 0, "eu-central/eu-central-n1\neu-central/eu-central-n2\n"},
	{"policy by its name", "well", "policy shop -o name", 0, "shop\n"},
	{"field of all items", "well", "services -o jsonpath={.items[*].name}", 0, "default/far default/peers default/serve"},
	{"field without braces", "well", "status -o jsonpath=cluster", 0, "us-east"},
	{"no service", "well", "explain", 2, "accepts 1 arg"},
	{"no namespace", "well", "explain serve", 2, "write NAMESPACE/NAME, such as default/serve"},
	{"no name", "well", "explain default/", 2, "want NAMESPACE/NAME"},
	{"port without number", "well", "explain default/serve:", 2, "no port after the colon"},
	{"port on backends", "well", "backends default/serve:80", 2, "a port is not accepted here; strait explain takes one"},
	{"service misspelt", "well", "explain default/serv", 1, "did you mean default/serve?"},
	{"service in another namespace", "well", "backends prod/far", 1, "did you mean default/far?"},
	{"service of no cluster", "well", "explain default/nothing-like-it", 1, "strait services"},
	{"no such port", "well", "explain default/serve:81", 1, "53/UDP (dns), 80/TCP (http)"},
	{"wait written with a blank", "well", "status --wait 30s", 2, "write --wait=30s"},
	{"wait for a negative time", "well", "status --wait=-1s", 2, "above 0"},
	{"wrong help topic", "well", "help stats", 2, "unknown command"},
	{"no shell", "well", "completion tcsh", 2, "unknown command"},
	{"version without daemon", "none", "version", 0, "there is no socket"},
	{"version with daemon", "well", "version", 0, "straitd  0.1.0"},
	{"version of this program", "none", "--version", 0, "strait "},
	{"connect one cluster", "none", "clusterset connect c1", 2, "connect needs two clusters"},
	{"connect unknown contexts", "none", "clusterset connect c1 c2 --kubeconfig /nonexistent", 1, "c1"},
	{"ask an unknown context", "none", "clusterset status c1 --kubeconfig /nonexistent", 3, "c1"},
	{"the drain of an unknown context", "none", "cluster status a --context c1 --kubeconfig /nonexistent", 3, "c1"},
	{"what a drain of an unknown context would do", "none", "cluster drain a --dry-run --context c1 --kubeconfig /nonexistent", 3, "c1"},
	{"completion", "well", "completion bash", 0, "__start_strait"},
	{"no command", "well", "", 0, "Examples:"},
	{"help about a problem", "none", "help str2102", 0, "STR2102: two nodes have overlapping pod prefixes"},
	{"help about no problem", "none", "help STR9999", 2, "docs/problems.md lists all codes"},
	{"page without a daemon", "none", "ui", 3, "try  start straitd"},
	{"page of all nodes by name", "well", "ui --node *", 2, "leave --node out"},
	{"graph of no form", "well", "graph -o svg", 2, "use text, dot, mermaid"},
	{"configuration of an unknown node", "mesh", "peer showconf node us-east-n9", 1, "strait nodes lists them"},
	{"configuration of which node", "mesh", "peer showconf node us-east-n2", 1, "name one of us-east/us-east-n2, us-west/us-east-n2"},
	{"configuration of a node that cannot be a peer", "mesh", "peer showconf node eu-central-n2", 1, "the mesh is off on it"},
	{"peer that cannot be one", "mesh", "peer showconf node eu-central-n2 --as-peer -o yaml", 1, "cannot be a peer"},
	{"configuration from an older straitd", "well", "peer showconf node us-east-n1", 1, "upgrade it"},
	{"configuration as YAML", "mesh", "peer showconf node us-east-n1 -o yaml", 2, "needs --as-peer"},
	{"configuration with more addresses", "mesh", "peer showconf node us-east-n1 --allowed-ips 10.0.0.0/8", 2, "needs --as-peer"},
	{"configuration with host bits", "mesh", "peer showconf node us-east-n1 --as-peer --allowed-ips 10.96.0.1/16", 2, "did you mean 10.96.0.0/16?"},
	{"configuration of a wrong form", "mesh", "peer showconf node us-east-n1 -o ini", 2, "use wg, yaml, json"},
	{"full map", "full", "status", 1, "✗ STR3101 map services: is full (8 of 8 entries)"},
	{"nearly full map", "nearlyFull", "status", 0, "! STR3102 map services: is 88 % full (7 of 8 entries)"},
	{"full map that makes room", "softFull", "status", 0, "no problems"},
	{"bpf alone", "well", "bpf", 0, "strait bpf slots"},
	{"no such map", "well", "bpf frontends", 2, "strait bpf --help"},
	{"no filter", "well", "bpf services serve", 2, `"serve" is neither a service, such as default/serve, nor a frontend`},
	{"filter with a wrong protocol", "well", "bpf services 241.7.3.9:80/XYZ", 2, "want TCP or UDP"},
	{"filter without a protocol", "well", "bpf services 241.7.3.9:80/", 2, "want TCP or UDP"},
	{"no such frontend", "well", "bpf backends 241.7.3.9:81", 1, "no frontend in the maps pinned at /sys/fs/bpf/strait matches 241.7.3.9:81"},
	{"no such frontend, sockets", "well", "bpf sockets 241.7.3.9:80/UDP", 1, "try  list the frontends with strait bpf services"},
	{"frontend without a backend", "well", "bpf backends fd00::9", 0, "0 backends"},
	{"service in no map", "well", "bpf slots default/srve", 1, "did you mean default/serve?"},
	{"service without a frontend", "well", "bpf slots default/peers", 1, "matches default/peers"},
	{"port that a service has not", "well", "bpf slots default/serve:81", 1, "53/UDP (dns), 80/TCP (http)"},
	{"maps without a daemon", "none", "bpf services", 0, "frontends have no names here: there is no socket"},
	{"service without a daemon", "none", "bpf services default/serve", 3, "try  filter by a frontend's address"},
	{"no pins", "none", "bpf services --pins /pins/none", 3, "this version of strait has no maps pinned at /pins/none"},
	{"pins of root", "well", "bpf slots --pins /pins/closed", 3, "try  run the same command as root (sudo)"},
	{"unreadable maps", "well", "bpf affinity --pins /pins/broken", 3, "maps change faster than they can be read"},
	{"opt-out alone", "well", "opt-out", 0, "strait opt-out list"},
	{"opt-out of no pins", "none", "opt-out list --pins /pins/none", 3, "--pins DIRECTORY or STRAIT_PINS"},
	{"opt-out of root's pins", "none", "opt-out add /sys/fs/cgroup --pins /pins/closed", 3, "run the same command as root"},
	{"opt-out of what", "well", "opt-out add", 2, "strait opt-out add --help"},
	{"opt-out by a relative path", "well", "opt-out add system.slice", 2, "is not an absolute path"},
	{"opt-out of no cgroup", "well", "opt-out add /nonexistent/x", 1, "/nonexistent/x is not a cgroup v2 directory"},
	{"not opted out", "well", "opt-out remove /nonexistent/x", 1, "is not opted out"},
}

func TestExitCodes(t *testing.T) {
	warning, unready, detached := wellView(), wellView(), wellView()
	warning.Status.Problems = []problem.Problem{{Object: "node a", Message: "slow", Warning: true}}
	unready.Status.Ready, unready.Status.Waiting = false, []string{"gossip"}
	detached.Status.Datapath.Attached = false
	full, nearlyFull, softFull := wellView(), wellView(), wellView()
	full.Status.Datapath.Maps = []datapath.MapUsage{{Map: "services", Used: 8, Limit: 8}}
	nearlyFull.Status.Datapath.Maps = []datapath.MapUsage{{Map: "services", Used: 7, Limit: 8}}
	softFull.Status.Datapath.Maps = []datapath.MapUsage{{Map: "affinities", Used: 8, Limit: 8, Soft: true}}
	sockets := map[string]string{"none": filepath.Join(t.TempDir(), "none.sock"), "file": "golden_test.go"}
	for name, v := range map[string]*view{"well": wellView(), "ill": illView(), "starting": nil, "mesh": meshView(), "warning": warning,
		"notReady": unready, "detached": detached, "full": full, "nearlyFull": nearlyFull, "softFull": softFull} {
		sockets[name], _ = startServer(t, v)
	}
	for _, c := range exitCases {
		t.Run(c.name, func(t *testing.T) {
			got := world(strings.Fields(c.args)...).on(sockets[c.daemon]).run(t)
			if got.code != c.code {
				t.Errorf("exit code %d, want %d", got.code, c.code)
			}
			if !strings.Contains(got.stdout+got.stderr, c.message) {
				t.Errorf("prints nothing of %q:\n%s%s", c.message, got.stdout, got.stderr)
			}
			if (c.code == cli.ExitUsage || c.code == cli.ExitUnknown) && got.stdout != "" {
				t.Errorf("stdout must hold results only: %s", got.stdout)
			}
		})
	}
}

func TestSocketFlagBeatsEnvironment(t *testing.T) {
	well, _ := startServer(t, wellView())
	if got := world("status", "--socket", well).on("/nonexistent").run(t); got.code != 0 {
		t.Errorf("exit code %d: %s", got.code, got.stderr)
	}
}

// allCommands is the root and every command below it, hidden ones too.
func allCommands() (commands []*cobra.Command) {
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		commands = append(commands, c)
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(newRoot(world()))
	return commands
}

// word is an argument of an example; one in quotes can have blanks.
var word = regexp.MustCompile(`"[^"]*"|\S+`)

// TestExamples parses every example line of every command's help as a command line. Two at least
// are of the command itself, or of one below it.
func TestExamples(t *testing.T) {
	for _, c := range allCommands() {
		own := 0
		for line := range strings.Lines(c.Example) {
			line, _, _ = strings.Cut(line, "#")
			line, _, _ = strings.Cut(line, ">") // the shell's part
			words := word.FindAllString(line, -1)
			if len(words) == 0 {
				continue
			}
			if err := parses(words); err != nil {
				t.Errorf("%s: example %q: %v", c.CommandPath(), line, err)
			}
			if strings.HasPrefix(strings.Join(words, " ")+" ", c.CommandPath()+" ") {
				own++
			}
		}
		if own < 2 && !c.Hidden {
			t.Errorf("%s has %d examples of its own, want two", c.CommandPath(), own)
		}
	}
}

// TestHelp: what a command answers is one line, nothing is wider than a terminal, and the exit
// codes are listed once.
func TestHelp(t *testing.T) {
	const width = 100
	codes := regexp.MustCompile(`(?i)exit codes?:?\s*\d`)
	for _, c := range allCommands() {
		if c.Hidden {
			continue
		}
		if c.Short == "" || strings.ContainsAny(c.Short, "\n") || strings.HasSuffix(c.Short, ".") {
			t.Errorf("%s: Short is not one line without a full stop: %q", c.CommandPath(), c.Short)
		}
		got := world(append(strings.Fields(c.CommandPath())[1:], "--help")...).run(t)
		for line := range strings.Lines(got.stdout) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
				t.Errorf("%s --help has a line of %d columns, want %d at most: %s", c.CommandPath(), n, width, line)
			}
		}
		if c.HasParent() && codes.MatchString(got.stdout) {
			t.Errorf("%s --help repeats exit codes: %q", c.CommandPath(), codes.FindString(got.stdout))
		}
	}
}

// TestExitCodesInHelp: the help of strait has one row for each constant of exit.go, and no other.
func TestExitCodesInHelp(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../../cli/exit.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 || !strings.HasPrefix(spec.Names[0].Name, "Exit") {
			return true
		}
		if value, ok := spec.Values[0].(*ast.BasicLit); ok && value.Kind == token.INT {
			want = append(want, value.Value)
		}
		return true
	})
	_, table, _ := strings.Cut(world("--help").run(t).stdout, "Exit codes:\n")
	var got []string
	for line := range strings.Lines(table) {
		got = append(got, strings.Fields(line)[0])
	}
	if len(want) < 6 || !slices.Equal(got, want) {
		t.Errorf("strait --help lists the exit codes %q, exit.go has %q", got, want)
	}
}

// parses returns an error unless the words are a command that would run.
func parses(words []string) error {
	if words[0] != "strait" {
		return fmt.Errorf("does not start with strait")
	}
	cmd, rest, err := newRoot(world()).Find(words[1:])
	if err != nil {
		return err
	}
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	if err := cmd.ValidateArgs(cmd.Flags().Args()); err != nil {
		return err
	}
	if !cmd.Runnable() {
		return fmt.Errorf("%s does nothing by itself", cmd.CommandPath())
	}
	return nil
}

func TestParsesRefusesNonsense(t *testing.T) {
	for _, line := range []string{"strait frobnicate", "strait status --nope", "strait explain", "kubectl get pods"} {
		if parses(strings.Fields(line)) == nil {
			t.Errorf("%q parses", line)
		}
	}
}

// TestJSONRoundTrip: what -o json and -o yaml print decodes into exactly what the daemon answered.
func TestJSONRoundTrip(t *testing.T) {
	ill := illView()
	socket, _ := startServer(t, ill)
	backends, _ := api.NewBackendList(ill.services(), "")
	explanation, _ := api.NewExplanation(ill.services(), "default/serve")
	for args, want := range map[string]any{
		"status":                api.NewStatusAnswer(ill.Status),
		"services":              *ill.services(),
		"backends":              backends,
		"nodes":                 *ill.nodes(),
		"members":               *api.NewMemberList(ill.Status.Viewpoint(), ill.Members),
		"policy":                *api.NewPolicyList(ill.Status.Viewpoint(), ill.Policies),
		"explain default/serve": explanation,
	} {
		for _, format := range []string{"json", "yaml"} {
			out := world(append(strings.Fields(args), "-o", format)...).on(socket).run(t)
			got := reflect.New(reflect.TypeOf(want))
			decode := json.Unmarshal
			if format == "yaml" {
				decode = func(b []byte, into any) error { return yaml.UnmarshalStrict(b, into) }
			}
			if err := decode([]byte(out.stdout), got.Interface()); err != nil {
				t.Fatalf("%s -o %s: %v", args, format, err)
			}
			// Compared as JSON, since an empty list and none are the same to a reader.
			wantText, _ := json.Marshal(want)
			gotText, _ := json.Marshal(got.Interface())
			if string(gotText) != string(wantText) {
				t.Errorf("%s -o %s:\n got %s\nwant %s", args, format, gotText, wantText)
			}
			if !strings.Contains(out.stdout, "cli.strait.io/v1") {
				t.Errorf("%s -o %s has no apiVersion", args, format)
			}
		}
	}
}

func TestUnknownPolicy(t *testing.T) {
	socket, _ := startServer(t, wellView())
	got := world("policy", "nothing").on(socket).run(t)
	if got.code != cli.ExitProblem || got.stdout != "" || !strings.Contains(got.stderr, `cluster us-east has no policy "nothing" in force`) ||
		!strings.Contains(got.stderr, "run strait policy for those that it has") {
		t.Errorf("%+v", got)
	}
}

func TestColour(t *testing.T) {
	socket, _ := startServer(t, illView())
	terminal := world("status").on(socket)
	terminal.IsTerminal = true
	withFlag := world("status", "--no-color").on(socket)
	withFlag.IsTerminal = true
	asJSON := world("status", "-o", "json").on(socket)
	asJSON.IsTerminal = true
	for _, c := range []struct {
		name    string
		env     env
		colours bool
	}{
		{"terminal", terminal, true},
		{"no terminal", world("status").on(socket), false},
		{"NO_COLOR", terminal.with("NO_COLOR", "1"), false},
		{"dumb terminal", terminal.with("TERM", "dumb"), false},
		{"--no-color", withFlag, false},
		{"JSON", asJSON, false},
	} {
		got := c.env.run(t).stdout
		if strings.Contains(got, "\x1b[33m!\x1b[0m held") != c.colours || strings.ContainsRune(got, '\x1b') != c.colours {
			t.Errorf("%s: want colours %v, got %q", c.name, c.colours, got)
		}
		if strings.Contains(got, "ports\x1b") {
			t.Errorf("%s: an escape sequence came through from a message", c.name)
		}
	}
}

func TestASCIIHasNothingElse(t *testing.T) {
	socket, _ := startServer(t, illView())
	for _, args := range []string{"status", "services", "backends", "nodes", "explain default/serve", "bpf services",
		"bpf sockets", "opt-out list"} {
		for i, r := range world(append(strings.Fields(args), "--ascii")...).on(socket).run(t).stdout {
			if r > 127 {
				t.Errorf("%s --ascii: %q at byte %d", args, r, i)
			}
		}
	}
}

func TestWait(t *testing.T) {
	t.Run("until well", func(t *testing.T) {
		socket, src := startServer(t, nil)
		time.AfterFunc(300*time.Millisecond, func() { src.view.Store(wellView()) })
		got := world("status", "--wait=20s").on(socket).run(t)
		if got.code != 0 || !strings.Contains(got.stdout, "no problems") || !strings.Contains(got.stderr, "no plan yet") {
			t.Errorf("%+v", got)
		}
		if n := strings.Count(got.stderr, "waiting"); n != 1 {
			t.Errorf("printed %d times what it waits for: %s", n, got.stderr)
		}
	})
	t.Run("until there is a daemon", func(t *testing.T) {
		none := filepath.Join(t.TempDir(), "none.sock")
		started := time.Now()
		got := world("status", "--wait=300ms").on(none).run(t)
		if got.code != cli.ExitWaitOver || !strings.Contains(got.stderr, "there is no socket") || time.Since(started) < 300*time.Millisecond {
			t.Errorf("%+v", got)
		}
	})
	t.Run("runs out", func(t *testing.T) {
		socket, _ := startServer(t, illView())
		got := world("status", "--wait=300ms", "-o", "json").on(socket).run(t)
		if got.code != cli.ExitWaitOver || !strings.Contains(got.stderr, "ran out") || !json.Valid([]byte(got.stdout)) {
			t.Errorf("%+v", got)
		}
	})
	t.Run("well at once", func(t *testing.T) {
		socket, _ := startServer(t, wellView())
		if got := world("status", "--wait").on(socket).run(t); got.code != 0 || got.stderr != "" {
			t.Errorf("%+v", got)
		}
	})
	t.Run("cannot heal", func(t *testing.T) {
		socket := filepath.Join(t.TempDir(), "s")
		l, err := net.Listen("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		go func() { _ = http.Serve(l, http.NotFoundHandler()) }()
		defer l.Close()
		started := time.Now()
		got := world("status", "--wait=20s").on(socket).run(t)
		if got.code != cli.ExitUnknown || !strings.Contains(got.stderr, "not from this version of strait") || time.Since(started) > 5*time.Second {
			t.Errorf("%+v", got)
		}
	})
	t.Run("interrupted", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(200*time.Millisecond, cancel)
		if code := run(ctx, world("status", "--wait=20s").on("/nonexistent/s")); code != cli.ExitInterrupted {
			t.Errorf("exit code %d", code)
		}
	})
}

func TestCompletion(t *testing.T) {
	socket, _ := startServer(t, illView())
	for prefix, want := range map[string][]string{
		"default/": {"default/far", "default/peers", "default/serve"},
		"shop/re":  {"shop/refused"},
		"nothing":  nil,
	} {
		got := world("__complete", "explain", prefix).on(socket).run(t)
		var names []string
		for line := range strings.Lines(got.stdout) {
			if !strings.HasPrefix(line, ":") {
				names = append(names, strings.TrimSpace(line))
			}
		}
		if !reflect.DeepEqual(names, want) || !strings.Contains(got.stdout, ":4") {
			t.Errorf("%s: %q", prefix, got.stdout)
		}
	}
	if got := world("__complete", "explain", "").on("/nonexistent/s").run(t); got.code != 0 || !strings.HasPrefix(got.stdout, ":4") {
		t.Errorf("without a daemon: %+v", got)
	}
}
