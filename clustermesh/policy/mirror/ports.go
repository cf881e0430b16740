package mirror

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// mergePorts sets the ports of a target: those of all its sources. Of those with one number, or one
// name, the oldest source's counts, and endpoints of the others are behind it. If there are
// several, each has a name, as a Service must have it: a source with a single port may have none.
func (t *target) mergePorts() {
	for i := range t.sources {
		t.sources[i].merged = t.merge(t.sources[i].svc.Spec.Ports)
	}
	if len(t.ports) < 2 {
		return
	}
	for i := range t.ports {
		p := &t.ports[i]
		for n := 0; p.Name == ""; n++ {
			name := fmt.Sprintf("port-%d-%s", p.Port, strings.ToLower(string(p.Protocol)))
			if n > 0 {
				name = fmt.Sprintf("%s-%d", name, n)
			}
			if !slices.ContainsFunc(t.ports, func(q corev1.ServicePort) bool { return q.Name == name }) {
				p.Name = name
			}
		}
	}
}

// merge adds the ports of a source. It returns, by name, which port of the target each is; -1 for
// those whose name another of the source's ports has there.
func (t *target) merge(ports []corev1.ServicePort) map[string]int {
	merged, used := map[string]int{}, map[int]bool{}
	put := func(name string, at int) {
		if used[at] {
			at = -1
		}
		merged[name], used[at] = at, at >= 0
	}
	for _, port := range ports {
		if at := slices.IndexFunc(t.ports, func(q corev1.ServicePort) bool { return q.Port == port.Port && q.Protocol == port.Protocol }); at >= 0 {
			put(port.Name, at)
		}
	}
	for _, port := range ports {
		if _, is := merged[port.Name]; is {
			continue
		}
		at := slices.IndexFunc(t.ports, func(q corev1.ServicePort) bool { return q.Name == port.Name })
		if at < 0 {
			port.NodePort = 0
			if port.TargetPort == (intstr.IntOrString{}) {
				port.TargetPort = intstr.FromInt32(port.Port) // as the API server would
			}
			at = len(t.ports)
			t.ports = append(t.ports, port)
		}
		put(port.Name, at)
	}
	return merged
}

// named returns the ports of a source's EndpointSlice under the names that they have in the target.
// A port that the source's Service does not have stays, unless the target's other ports have its
// name.
func (t *target) named(f from, ports []discoveryv1.EndpointPort) (out []discoveryv1.EndpointPort) {
	taken := map[string]bool{}
	for _, p := range ports {
		if at, is := f.merged[deref(p.Name)]; is && at >= 0 {
			taken[t.ports[at].Name] = true
		}
	}
	for _, p := range ports {
		name := deref(p.Name)
		at, is := f.merged[name]
		switch {
		case is && at >= 0:
			p.Name = &t.ports[at].Name
		case is || taken[name]:
			continue
		}
		out = append(out, p)
	}
	return out
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
