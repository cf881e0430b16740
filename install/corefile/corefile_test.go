package corefile_test

import (
	"errors"
	"strings"
	"testing"

	"strait.io/strait/install/corefile"
)

const zone = "clusterset.local"

const kubeadm = `.:53 {
    errors
    health {
       lameduck 5s
    }
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa {
       pods insecure
       fallthrough in-addr.arpa ip6.arpa
       ttl 30
    }
    prometheus :9153
    forward . /etc/resolv.conf {
       max_concurrent 1000
    }
    cache 30 {
       disable success cluster.local
       disable denial cluster.local
    }
    loop
    reload
    loadbalance
}
`

// Each table entry is edited, edited again (nothing changes), and undone.
func TestAddRemove(t *testing.T) {
	for _, tc := range []struct{ name, have, want string }{
		{"kubeadm", kubeadm, strings.NewReplacer("kubernetes cluster.local in", "kubernetes cluster.local clusterset.local in",
			"       ttl 30\n", "       ttl 30\n       multicluster clusterset.local\n",
			"success cluster.local", "success cluster.local clusterset.local", "denial cluster.local", "denial cluster.local clusterset.local").Replace(kubeadm)},
		{"cache of other zones", ".:53 {\n  kubernetes cluster.local {\n    multicluster other.set\n  }\n  cache {\n    disable success example.com # theirs\n    disable denial cluster.local # ours\n    disable denial\n  }\n}\n",
			".:53 {\n  kubernetes cluster.local clusterset.local {\n    multicluster clusterset.local other.set\n  }\n  cache {\n    disable success example.com # theirs\n    disable denial cluster.local clusterset.local # ours\n    disable denial\n  }\n}\n"},
		{"k3s, tabs, host file", ".:53 {\n\terrors\n\tkubernetes cluster.local in-addr.arpa ip6.arpa {\n\t\tpods insecure\n\t}\n\thosts /etc/coredns/NodeHosts {\n\t\tttl 60\n\t}\n\timport /etc/coredns/custom/*.override\n}\nimport /etc/coredns/custom/*.server\n",
			".:53 {\n\terrors\n\tkubernetes cluster.local clusterset.local in-addr.arpa ip6.arpa {\n\t\tpods insecure\n\t\tmulticluster clusterset.local\n\t}\n\thosts /etc/coredns/NodeHosts {\n\t\tttl 60\n\t}\n\timport /etc/coredns/custom/*.override\n}\nimport /etc/coredns/custom/*.server\n"},
		{"comments, some with braces", "# main } {\n.:53 { # all\n  # kubernetes other {\n  kubernetes cluster.local { # the cluster\n    ttl 5 # short }\n    # last\n  } # end\n}\n",
			"# main } {\n.:53 { # all\n  # kubernetes other {\n  kubernetes cluster.local clusterset.local { # the cluster\n    ttl 5 # short }\n    # last\n    multicluster clusterset.local\n  } # end\n}\n"},
		{"no block", ".:53 {\n    kubernetes cluster.local\n    forward . 1.1.1.1\n}\n",
			".:53 {\n    kubernetes cluster.local clusterset.local {\n        multicluster clusterset.local\n    }\n    forward . 1.1.1.1\n}\n"},
		{"several server blocks, none for the zone", ".:53 {\n  forward . 1.1.1.1\n}\ncluster.local:53 in-addr.arpa:53 {\n  kubernetes cluster.local {\n    ttl 5\n  }\n}\n",
			".:53 {\n  forward . 1.1.1.1\n}\nclusterset.local:53 cluster.local:53 in-addr.arpa:53 {\n  kubernetes cluster.local clusterset.local {\n    ttl 5\n    multicluster clusterset.local\n  }\n}\n"},
		{"commas and schemes", "dns://cluster.local:53, dns://in-addr.arpa:53 {\n  kubernetes cluster.local {\n    ttl 5\n  }\n}\n",
			"dns://clusterset.local:53, dns://cluster.local:53, dns://in-addr.arpa:53 {\n  kubernetes cluster.local clusterset.local {\n    ttl 5\n    multicluster clusterset.local\n  }\n}\n"},
		{"two blocks with kubernetes: the one that is asked", "corp.example:53 {\n  kubernetes corp.example {\n    ttl 5\n  }\n}\n.:53 {\n  kubernetes cluster.local {\n    ttl 5\n  }\n}\n",
			"corp.example:53 {\n  kubernetes corp.example {\n    ttl 5\n  }\n}\n.:53 {\n  kubernetes cluster.local clusterset.local {\n    ttl 5\n    multicluster clusterset.local\n  }\n}\n"},
		{"another multicluster zone", ".:53 {\n  kubernetes cluster.local other.set {\n    multicluster other.set\n  }\n}\n",
			".:53 {\n  kubernetes cluster.local clusterset.local other.set {\n    multicluster clusterset.local other.set\n  }\n}\n"},
		{"snippet", "(k8s) {\n  kubernetes cluster.local {\n    ttl 5\n  }\n}\n.:53 {\n  import k8s\n}\n",
			"(k8s) {\n  kubernetes cluster.local clusterset.local {\n    ttl 5\n    multicluster clusterset.local\n  }\n}\n.:53 {\n  import k8s\n}\n"},
		{"quotes, no newline at the end", ".:53 {\n  template IN A {\n    answer \"{{ .Name }} # no comment { \"\n  }\n  kubernetes cluster.local {\n    ttl 5\n  }\n}",
			".:53 {\n  template IN A {\n    answer \"{{ .Name }} # no comment { \"\n  }\n  kubernetes cluster.local clusterset.local {\n    ttl 5\n    multicluster clusterset.local\n  }\n}"},
		{"no zone before the reverse ones", ".:53 {\n  kubernetes in-addr.arpa {\n    ttl 5\n  }\n}\n",
			".:53 {\n  kubernetes in-addr.arpa clusterset.local {\n    ttl 5\n    multicluster clusterset.local\n  }\n}\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := corefile.Add(tc.have, zone)
			if err != nil || got != tc.want {
				t.Fatalf("Add: %v\n%s\nwant\n%s", err, got, tc.want)
			}
			if again, err := corefile.Add(got, zone); err != nil || again != got {
				t.Errorf("Add again: %v\n%s", err, again)
			}
			if back, err := corefile.Remove(got, zone); err != nil || back != tc.have {
				t.Errorf("Remove: %v\n%s\nwant\n%s", err, back, tc.have)
			}
			if same, err := corefile.Remove(tc.have, zone); err != nil || same != tc.have {
				t.Errorf("Remove without Add: %v\n%s", err, same)
			}
		})
	}
}

// TestImplicitZones: a plugin without a list serves its block's zones, and must go on to.
func TestImplicitZones(t *testing.T) {
	got, err := corefile.Add("cluster.local:53 in-addr.arpa:53 {\n  kubernetes {\n    ttl 5\n  }\n}\n", zone)
	want := "clusterset.local:53 cluster.local:53 in-addr.arpa:53 {\n  kubernetes cluster.local in-addr.arpa clusterset.local {\n    ttl 5\n    multicluster clusterset.local\n  }\n}\n"
	if err != nil || got != want {
		t.Errorf("%v\n%s", err, got)
	}
}

func TestRefused(t *testing.T) {
	for _, tc := range []struct{ name, text, message string }{
		{"no kubernetes", ".:53 {\n  forward . 1.1.1.1\n}\n", corefile.ErrNoKubernetes.Error()},
		{"empty", "", corefile.ErrNoKubernetes.Error()},
		{"Lighthouse", ".:53 {\n  kubernetes cluster.local\n}\nclusterset.local:53 {\n  forward . 10.0.0.9\n}\n", "line 4"},
		{"open brace", ".:53 {\n  kubernetes cluster.local {\n", "not closed"},
		{"stray brace", "}\n", "line 1"},
		{"no braces", ".:53\nkubernetes", "no braces"},
		{"a key that is a brace", "000 {, {  kubernetes }", "cannot edit"},
	} {
		if got, err := corefile.Add(tc.text, zone); err == nil || !strings.Contains(err.Error(), tc.message) {
			t.Errorf("%s: %v, want %q\n%s", tc.name, err, tc.message, got)
		}
	}
	if _, err := corefile.Add(".:53 {\n whoami\n}", zone); !errors.Is(err, corefile.ErrNoKubernetes) {
		t.Error(err)
	}
}

// FuzzCorefile: what can be added to can be read again, is stable, and can be undone.
func FuzzCorefile(f *testing.F) {
	f.Add(kubeadm)
	f.Add("a.b:53, c {\n\tkubernetes\n}")
	f.Add("(s) {\nkubernetes x { multicluster y }\n}\n")
	f.Add("000 {, {  kubernetes }")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := corefile.Add(text, zone)
		if err != nil {
			return
		}
		again, err := corefile.Add(got, zone)
		if err != nil || again != got {
			t.Fatalf("Add is not stable: %v\n%q\n%q\n%q", err, text, got, again)
		}
		back, err := corefile.Remove(got, zone)
		if err != nil {
			t.Fatalf("Remove: %v\n%q", err, got)
		}
		if strings.Contains(text, "clusterset") || strings.Contains(text, "import") {
			return
		}
		if strings.Contains(back, "clusterset") {
			t.Fatalf("Remove leaves the zone:\n%q\n%q", got, back)
		}
	})
}
