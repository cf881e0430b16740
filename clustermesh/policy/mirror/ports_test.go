package mirror_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"strait.io/strait/clustermesh/policy"
	"strait.io/strait/clustermesh/policy/mirror"
)

// What clusters call the ports of one Service differs. A mirror of several has ports that an API
// server accepts, and the endpoints of each source are behind the port of that number, or else of
// that name.
func TestPortsOfSeveralSources(t *testing.T) {
	type ports map[string]int32 // of the Service; its pods listen on 1000 more
	for name, c := range map[string]struct {
		older, younger  ports
		want            []string // ports of the mirror
		behind, behind2 []string // ports of the endpoints of each
	}{
		"one without a name": {
			ports{"": 80}, nil, []string{":80"}, []string{":1080"}, nil,
		},
		"the same without a name": {
			ports{"": 80}, ports{"": 80}, []string{":80"}, []string{":1080"}, []string{":1080"},
		},
		"a name here, none there": {
			ports{"": 80}, ports{"http": 80}, []string{":80"}, []string{":1080"}, []string{":1080"},
		},
		"none here, a name there": {
			ports{"http": 80}, ports{"": 80}, []string{"http:80"}, []string{"http:1080"}, []string{"http:1080"},
		},
		"one more beside one without a name": {
			ports{"": 80}, ports{"http": 80, "metrics": 90}, []string{"metrics:90", "port-80-tcp:80"},
			[]string{"port-80-tcp:1080"}, []string{"metrics:1090", "port-80-tcp:1080"},
		},
		"another one without a name": {
			ports{"port-80-tcp": 81}, ports{"": 80}, []string{"port-80-tcp-1:80", "port-80-tcp:81"}, []string{"port-80-tcp:1081"}, []string{"port-80-tcp-1:1080"},
		},
		"another number": {
			ports{"http": 80}, ports{"http": 8080}, []string{"http:80"}, []string{"http:1080"}, []string{"http:9080"},
		},
		"names the other way round": {
			ports{"a": 80, "b": 81}, ports{"a": 81, "b": 80}, []string{"a:80", "b:81"}, []string{"a:1080", "b:1081"}, []string{"a:1080", "b:1081"},
		},
		"a number and a name that are two ports here": {
			ports{"a": 80}, ports{"a": 81, "b": 80}, []string{"a:80"}, []string{"a:1080"}, []string{"a:1080"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			made := func(id string, a age, addr string, ps ports) mirror.Cluster {
				s, e := service("cart", a), slice("cart", addr)
				for name, number := range ps {
					port := number + 1000
					s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: name, Port: number, Protocol: corev1.ProtocolTCP})
					e.Ports = append(e.Ports, discoveryv1.EndpointPort{Name: &name, Port: &port, Protocol: new(corev1.ProtocolTCP)})
				}
				if ps == nil {
					return cluster(id)
				}
				return cluster(id, s, e)
			}
			got, _ := settle(t, []policy.Policy{mirroring("shop")}, cluster("c2"), nil, made("c1", age(time.Hour), "10.1.0.1", c.older), made("c3", 0, "10.3.0.1", c.younger))
			var names []string
			for _, p := range find(t, got, "shop/cart").Spec.Ports {
				names = append(names, fmt.Sprintf("%s:%d", p.Name, p.Port))
			}
			if slices.Sort(names); !slices.Equal(names, c.want) {
				t.Errorf("ports %q, want %q", names, c.want)
			}
			behind := map[string][]string{}
			for _, s := range got.Slices {
				for _, p := range s.Ports {
					behind[s.Endpoints[0].Addresses[0]] = append(behind[s.Endpoints[0].Addresses[0]], fmt.Sprintf("%s:%d", *p.Name, *p.Port))
				}
			}
			for addr, want := range map[string][]string{"10.1.0.1": c.behind, "10.3.0.1": c.behind2} {
				if slices.Sort(behind[addr]); !slices.Equal(behind[addr], want) {
					t.Errorf("%s has %q, want %q", addr, behind[addr], want)
				}
			}
		})
	}
}
