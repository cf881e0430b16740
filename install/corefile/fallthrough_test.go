package corefile_test

import (
	"strings"
	"testing"

	"strait.io/strait/install/corefile"
)

const relay = `svc.cluster.local:5300 {
    bind 127.0.0.1
    errors
    rewrite name suffix .svc.cluster.local. .svc.clusterset.local. answer auto
    forward . 127.0.0.1:53
}`

// Each Corefile is edited, edited again (nothing changes), and all of it is undone.
func TestFallThrough(t *testing.T) {
	for _, tc := range []struct{ name, have, want string }{
		{"kubeadm", kubeadm, strings.NewReplacer(
			"kubernetes cluster.local in", "kubernetes cluster.local clusterset.local in",
			"fallthrough in-addr", "fallthrough svc.cluster.local in-addr",
			"       ttl 30\n", "       ttl 30\n       multicluster clusterset.local\n",
			"    forward .", "    forward svc.cluster.local 127.0.0.1:5300\n    forward .",
			"success cluster.local", "success cluster.local clusterset.local", "denial cluster.local", "denial cluster.local clusterset.local",
		).Replace(kubeadm) + relay + "\n"},
		{"another port, nothing forwarded, no newline at the end", "dns://.:5353 {\n\tkubernetes cluster.local # own\n}",
			"dns://.:5353 {\n\tforward svc.cluster.local 127.0.0.1:5300\n\tkubernetes cluster.local clusterset.local {\n\t\tmulticluster clusterset.local\n\t\tfallthrough svc.cluster.local\n\t} # own\n}\n" +
				strings.Replace(relay, "127.0.0.1:53\n", "127.0.0.1:5353\n", 1)},
		{"falls through already", ".:53 {\n  kubernetes cluster.local {\n    fallthrough\n  }\n  forward . 1.1.1.1\n}\n",
			".:53 {\n  kubernetes cluster.local clusterset.local {\n    fallthrough\n    multicluster clusterset.local\n  }\n" +
				"  forward svc.cluster.local 127.0.0.1:5300\n  forward . 1.1.1.1\n}\n" + relay + "\n"},
		{"a snippet, and a domain of its own", "(k8s) {\n  kubernetes corp.example {\n    ttl 5\n  }\n}\n.:53 {\n  import k8s\n}\n",
			"(k8s) {\n  forward svc.corp.example 127.0.0.1:5300\n  kubernetes corp.example clusterset.local {\n    ttl 5\n    multicluster clusterset.local\n    fallthrough svc.corp.example\n  }\n}\n.:53 {\n  import k8s\n}\n" +
				strings.ReplaceAll(relay, "cluster.local", "corp.example") + "\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := addFallThrough(t, tc.have)
			if got != tc.want {
				t.Fatalf("got\n%s\nwant\n%s", got, tc.want)
			}
			if again := addFallThrough(t, got); again != got {
				t.Errorf("again:\n%s", again)
			}
			if plain, err := corefile.Add(got, zone); err != nil || plain != got {
				t.Errorf("Add changes it: %v\n%s", err, plain)
			}
			if back, err := corefile.Remove(got, zone); err != nil || back != tc.have {
				t.Errorf("Remove: %v\n%s\nwant\n%s", err, back, tc.have)
			}
		})
	}
}

func addFallThrough(t *testing.T, text string) string {
	t.Helper()
	text, err := corefile.Add(text, zone)
	if err == nil {
		text, err = corefile.AddFallThrough(text, zone)
	}
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestFallThroughRefused(t *testing.T) {
	for _, tc := range []struct{ name, text, message string }{
		{"no kubernetes", ".:53 {\n  forward . 1.1.1.1\n}\n", corefile.ErrNoKubernetes.Error()},
		{"listens elsewhere", ".:53 {\n  bind 169.254.20.10\n  kubernetes cluster.local\n}\n", "line 2: bind"},
		{"no zone of its own", ".:53 {\n  kubernetes in-addr.arpa\n}\n", "line 2: the plugin kubernetes has no zone of its own"},
		{"open brace", ".:53 {\n", "not closed"},
	} {
		if got, err := corefile.AddFallThrough(tc.text, zone); err == nil || !strings.Contains(err.Error(), tc.message) {
			t.Errorf("%s: %v, want %q\n%s", tc.name, err, tc.message, got)
		}
	}
}

// FuzzFallThrough: what can be added to can be read again, is stable, and can be undone.
func FuzzFallThrough(f *testing.F) {
	f.Add(kubeadm)
	f.Add("a.b:53, c {\n\tkubernetes x\nforward\n}")
	f.Add("(s) { kubernetes x { multicluster y }\n}\n")
	f.Add(".:53 {\n  kubernetes 0,, x\n}\n") // a zone that is no domain
	f.Add(".:53 { forward a b\nkubernetes x { fallthrough }\n}")
	f.Fuzz(func(t *testing.T, text string) {
		text, err := corefile.Add(text, zone)
		if err != nil {
			return
		}
		got, err := corefile.AddFallThrough(text, zone)
		if err != nil {
			return
		}
		again, err := corefile.AddFallThrough(got, zone)
		if err != nil || again != got {
			t.Fatalf("not stable: %v\n%q\n%q\n%q", err, text, got, again)
		}
		back, err := corefile.Remove(got, zone)
		if err != nil {
			t.Fatalf("Remove: %v\n%q", err, got)
		}
		if !strings.Contains(text, ":5300") && strings.Contains(back, ":5300") {
			t.Fatalf("Remove leaves the relay:\n%q\n%q", got, back)
		}
	})
}
