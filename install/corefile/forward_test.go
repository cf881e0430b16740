package corefile_test

import (
	"errors"
	"testing"

	"strait.io/strait/install/corefile"
)

// NodeLocal DNSCache as Kubernetes' addon has it, and as others write it.
func TestAddForwarded(t *testing.T) {
	const addon = `cluster.local:53 {
    errors
    cache {
            success 9984 30
            denial 9984 5
    }
    reload
    loop
    bind 169.254.20.10 10.96.0.10
    forward . __PILLAR__CLUSTER__DNS__ {
            force_tcp
    }
    prometheus :9253
    health 169.254.20.10:8080
    }
in-addr.arpa:53 {
    errors
    forward . __PILLAR__CLUSTER__DNS__
    }
.:53 {
    errors
    forward . __PILLAR__UPSTREAM__SERVERS__
    }
`
	const taught = "clusterset.local:53 " + addon
	for _, c := range []struct{ name, local, text, want string }{
		{"the addon", "cluster.local", addon, taught},
		{"again", "cluster.local", taught, taught},
		{"another domain", "corp.example", "corp.example.:53 {\n    forward . 10.0.0.10\n}\n", "clusterset.local:53 corp.example.:53 {\n    forward . 10.0.0.10\n}\n"},
		{"one block of its own", "cluster.local", "cluster.local {\n forward . 10.0.0.10\n}\nclusterset.local {\n forward . 10.0.0.10\n}\n",
			"cluster.local {\n forward . 10.0.0.10\n}\nclusterset.local {\n forward . 10.0.0.10\n}\n"},
		{"commas", "cluster.local", "cluster.local:53, in-addr.arpa:53 {\n forward . 10.0.0.10\n}\n", "clusterset.local:53, cluster.local:53, in-addr.arpa:53 {\n forward . 10.0.0.10\n}\n"},
	} {
		got, err := corefile.AddForwarded(c.text, zone, c.local)
		if err != nil || got != c.want {
			t.Errorf("%s: %v\n%s\nwant\n%s", c.name, err, got, c.want)
		}
	}
	if back, err := corefile.RemoveForwarded(taught, zone, "cluster.local"); err != nil || back != addon {
		t.Errorf("removed: %v\n%s", err, back)
	}
	for name, text := range map[string]string{
		"everything goes elsewhere": ".:53 {\n forward . 192.0.2.1\n}\n",
		"it forwards nothing":       "cluster.local:53 {\n hosts\n}\n",
		"another domain":            "corp.example:53 {\n forward . 10.0.0.10\n}\n",
	} {
		if got, err := corefile.AddForwarded(text, zone, "cluster.local"); !errors.Is(err, corefile.ErrNoForward) {
			t.Errorf("%s: %v\n%s", name, err, got)
		}
	}
}

func TestLocalZone(t *testing.T) {
	for text, want := range map[string]string{
		".:53 {\n kubernetes cluster.local clusterset.local in-addr.arpa {\n }\n}\n": "cluster.local",
		".:53 {\n kubernetes in-addr.arpa corp.example.\n}\n":                        "corp.example",
		"clusterset.local:53 corp.example:53 {\n kubernetes\n}\n":                    "corp.example",
		".:53 {\n kubernetes clusterset.local\n}\n":                                  "",
	} {
		if got, err := corefile.LocalZone(text, zone); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q %v, want %q", text, got, err, want)
		}
	}
}
