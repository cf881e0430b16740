package connectivity

import (
	"encoding/json"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func addrs(texts ...string) (out []netip.Addr) {
	for _, t := range texts {
		out = append(out, netip.MustParseAddr(t))
	}
	return out
}

// pair is two clusters with a node each. The first has both families.
func pair() []Cluster {
	a, b := Identity{"a", "a1", "pod-1"}, Identity{"b", "b1", "pod-1"}
	return []Cluster{
		{
			Name: "a", Context: "ca",
			Clients: []Client{{Identity: a, Addresses: addrs("10.1.0.1", "fd00:1::1")}, {Identity{"a", "a1", "host-1"}, true, addrs("192.0.2.1")}},
			Servers: []Server{{a, addrs("10.1.0.1", "fd00:1::1")}},
			Imports: map[string][]netip.Addr{"a": addrs("241.0.0.1", "fd00:99::1"), "b": addrs("241.0.0.2")},
		}, {
			Name: "b", Context: "cb",
			Clients: []Client{{Identity: b, Addresses: addrs("10.2.0.1")}},
			Servers: []Server{{b, addrs("10.2.0.1")}},
			Imports: map[string][]netip.Addr{"b": addrs("241.0.0.2")},
		},
	}
}

func TestCases(t *testing.T) {
	all := Cases("ns", pair())
	count := func(is func(Case) bool) (n int) {
		for _, c := range all {
			if is(c) {
				n++
			}
		}
		return n
	}
	for _, c := range []struct {
		what string
		want int
		is   func(Case) bool
	}{
		// Per client, cluster and family: 5 to the pod's own address, 4 to the ClusterSetIP, 3 names.
		{"a pod to its own cluster", 24, func(c Case) bool { return c.From == "a/a1" && c.Kind == "pod" && c.To == "a" }},
		{"a host without IPv6", 24, func(c Case) bool { return c.Kind == "host" }},
		{"a pod to a cluster without IPv6", 12, func(c Case) bool { return c.From == "a/a1" && c.Kind == "pod" && c.To == "b" }},
		{"a cluster without the import", 9 - 2, func(c Case) bool { return c.From == "b/b1" && c.To == "a" && c.Missing != "" }},
		{"its pod addresses are tried", 5, func(c Case) bool { return c.From == "b/b1" && c.To == "a" && c.Missing == "" }},
	} {
		if got := count(c.is); got != c.want {
			t.Errorf("%s: %d cases, want %d", c.what, got, c.want)
		}
	}
	for i, c := range all {
		call, has := c.Call(i)
		if has != (c.Missing == "") || has && (call.Host == "" || call.Port == 0 || call.ID != i || len(call.Network) != 4) {
			t.Errorf("%+v: call %+v, %v", c, call, has)
		}
	}
	want := "pod-1.b.pods-b.ns.svc.clusterset.local."
	if !slices.ContainsFunc(all, func(c Case) bool { return c.Way == ByPodName && c.Target == want }) {
		t.Errorf("no case calls %s", want)
	}
}

var label = regexp.MustCompile(`^[a-z]([-a-z0-9]*[a-z0-9])?$`)

func TestNames(t *testing.T) {
	for _, cluster := range []string{"c1", strings.Repeat("x", 63), strings.Repeat("x", 5) + strings.Repeat("-", 57) + "y"} {
		for _, name := range []string{ServiceOf(cluster), HeadlessOf(cluster)} {
			if len(name) > 63 || !label.MatchString(name) {
				t.Errorf("%q cannot be the name of a Service", name)
			}
		}
	}
}

// TestObjects: the pods obey the restricted Pod Security Standard, but for the network of the node,
// which only the pods have that listen on nothing.
func TestObjects(t *testing.T) {
	s := Setup{Namespace: "ns", Cluster: "a", ExportAPI: "multicluster.x-k8s.io/v1beta1", Image: "img:1", PullSecrets: []string{"pull"}, Nodes: []string{"n1", "n2"}, Host: true}
	docs := append(s.Objects(), s.HostPods()...)
	if len(docs) != 8 {
		t.Fatalf("%d objects, want 2 Services, 2 exports, 4 pods", len(docs))
	}
	for _, d := range docs {
		var o struct {
			Kind     string
			Metadata struct {
				Name, Namespace string
				Labels          map[string]string
			}
			Spec struct {
				HostNetwork     bool
				SecurityContext struct {
					RunAsNonRoot   bool
					SeccompProfile struct{ Type string }
				}
				Containers []struct {
					Image           string
					Args            []string
					SecurityContext struct {
						AllowPrivilegeEscalation *bool
						Capabilities             struct{ Drop []string }
					}
				}
			}
		}
		if err := json.Unmarshal(d, &o); err != nil {
			t.Fatal(err)
		}
		if o.Metadata.Namespace != "ns" || o.Metadata.Labels[Label] != "true" {
			t.Errorf("%s: not marked as the test's", d)
		}
		if o.Kind != "Pod" {
			continue
		}
		c := o.Spec.Containers[0]
		if !o.Spec.SecurityContext.RunAsNonRoot || o.Spec.SecurityContext.SeccompProfile.Type != "RuntimeDefault" ||
			c.SecurityContext.AllowPrivilegeEscalation == nil || *c.SecurityContext.AllowPrivilegeEscalation || !slices.Equal(c.SecurityContext.Capabilities.Drop, []string{"ALL"}) {
			t.Errorf("%s: not restricted", d)
		}
		if listens := slices.Contains(c.Args, "serve"); listens == o.Spec.HostNetwork || c.Image != "img:1" {
			t.Errorf("%s: listens %v", d, listens)
		}
	}
	if s.Host = false; len(s.HostPods()) != 0 || !strings.Contains(string(s.NamespaceObject()), "restricted") {
		t.Error("without pods in the nodes' network, the namespace is not restricted")
	}
}

func TestJudge(t *testing.T) {
	a, b := Identity{"a", "a1", "pod-1"}, Identity{"b", "b1", "pod-1"}
	client := Client{Identity: a, Addresses: addrs("10.1.0.1")}
	for _, c := range []struct {
		name string
		c    Case
		o    Outcome
		err  error
		want State
		says string
	}{
		{"fine", Case{Client: client, To: "b"}, Outcome{Stage: Done, Server: b, Seen: addrs("10.1.0.1")[0]}, nil, OK, ""},
		{"seen by another address", Case{Client: client, To: "b"}, Outcome{Stage: Done, Server: b, Seen: addrs("192.0.2.1")[0]}, nil, OK, "sees the client as 192.0.2.1"},
		{"seen by another address in its own cluster", Case{Client: client, To: "a"}, Outcome{Stage: Done, Server: a, Seen: addrs("192.0.2.1")[0]}, nil, OK, ""},
		{"another cluster answers", Case{Client: client, To: "b"}, Outcome{Stage: Done, Server: a}, nil, Failed, "cluster a answered"},
		{"another pod answers", Case{Client: client, To: "b", Server: Identity{"b", "b2", "pod-2"}}, Outcome{Stage: Done, Server: b}, nil, Failed, "not pod-2"},
		{"no answer", Case{Client: client, To: "b"}, Outcome{Stage: Receive, Error: "no answer in time"}, nil, Failed, "no answer"},
		{"no import", Case{Client: client, To: "b", Missing: "no import"}, Outcome{}, nil, Failed, "no import"},
		{"not asked", Case{Client: client, To: "b"}, Outcome{}, errNotAsked, Unknown, "exec"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Judge(c.c, c.o, c.err)
			if got.State != c.want || !strings.Contains(got.Error+got.Note, c.says) || got.State == OK && (got.Error != "" || c.says == "" && got.Note != "") {
				t.Errorf("%+v, want %s with %q", got, c.want, c.says)
			}
		})
	}
}
