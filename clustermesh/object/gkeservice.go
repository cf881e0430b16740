package object

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/problem"
)

// annotationProtocols has of a MultiClusterService, in JSON, the protocol of each port.
const annotationProtocols = "networking.gke.io/app-protocols"

// appProtocols are the protocols of annotationProtocols, as Kubernetes names them.
var appProtocols = map[string]string{"HTTP": "http", "HTTPS": "https", "HTTP2": "kubernetes.io/h2c"}

// notOfServices are annotations of MultiClusterServices for Google's load balancer: health checks,
// and who may come in.
var notOfServices = map[string]string{
	"cloud.google.com/backend-config":      "a BackendConfig is for Google's load balancer; pods are healthy by their readiness, and strait does not check who comes in",
	"beta.cloud.google.com/backend-config": "a BackendConfig is for Google's load balancer; pods are healthy by their readiness, and strait does not check who comes in",
}

// multiServiceNames are the annotations of MultiClusterServices that count.
var multiServiceNames = slices.Concat([]string{annotationProtocols}, slices.Sorted(maps.Keys(notOfServices)), routingNames)

// MultiService is a MultiClusterService of networking.gke.io. In each cluster that it lists, it
// selects pods, which all clusters reach.
type MultiService struct {
	GKEObject
	Selector map[string]string
	Ports    []corev1.ServicePort
	links    []string          // LOCATION/CLUSTER; empty means every cluster
	routing  map[string]string // its annotations about that
}

func multiServiceFrom(in *unstructured.Unstructured) *MultiService {
	var s struct {
		Spec struct {
			Template struct {
				Spec struct {
					Selector map[string]string `json:"selector"`
					Ports    []struct {
						Name       string             `json:"name"`
						Protocol   corev1.Protocol    `json:"protocol"`
						Port       int32              `json:"port"`
						TargetPort intstr.IntOrString `json:"targetPort"`
					} `json:"ports"`
				} `json:"spec"`
			} `json:"template"`
			Clusters []struct {
				Link string `json:"link"`
			} `json:"clusters"`
		} `json:"spec"`
	}
	out := &MultiService{GKEObject: gkeFrom(in, &s, multiServiceNames)}
	at, spec := field.NewPath("spec", "template", "spec"), s.Spec.Template.Spec
	if out.Selector = spec.Selector; len(spec.Selector) == 0 {
		out.Mistakes = append(out.Mistakes, field.Required(at.Child("selector"), "say by their labels which pods answer"))
	}
	if len(spec.Ports) == 0 {
		out.Mistakes = append(out.Mistakes, field.Required(at.Child("ports"), "a Service without ports cannot be reached"))
	}
	for _, p := range spec.Ports {
		if p.Protocol == "" {
			p.Protocol = corev1.ProtocolTCP
		}
		if p.TargetPort == (intstr.IntOrString{}) {
			p.TargetPort = intstr.FromInt32(p.Port)
		}
		out.Ports = append(out.Ports, corev1.ServicePort{Name: p.Name, Protocol: p.Protocol, Port: p.Port, TargetPort: p.TargetPort})
	}
	for i, c := range s.Spec.Clusters {
		out.links = append(out.links, c.Link)
		if bad := validation.IsDNS1123Label(clusterOf(c.Link)); len(bad) > 0 {
			out.Mistakes = append(out.Mistakes, field.Invalid(field.NewPath("spec", "clusters").Index(i).Child("link"), c.Link, "want LOCATION/CLUSTER: "+bad[0]))
		}
	}
	out.protocols(in.GetAnnotations())
	out.forbidAnnotations(in.GetAnnotations(), notOfServices)
	out.routing = only(in.GetAnnotations(), routingNames)
	return out
}

// protocols gives the ports the protocols of the annotation.
func (s *MultiService) protocols(annotations map[string]string) {
	text, has := annotations[annotationProtocols]
	if !has {
		return
	}
	at := field.NewPath("metadata", "annotations").Key(annotationProtocols)
	var byName map[string]string
	if err := json.Unmarshal([]byte(text), &byName); err != nil {
		s.Mistakes = append(s.Mistakes, field.Invalid(at, text, `want JSON, as in {"web": "HTTPS"}`))
		return
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		i := slices.IndexFunc(s.Ports, func(p corev1.ServicePort) bool { return p.Name == name })
		app, known := appProtocols[byName[name]]
		switch {
		case i < 0:
			s.Mistakes = append(s.Mistakes, field.Invalid(at, text, fmt.Sprintf("there is no port %q", name)))
		case !known:
			s.Mistakes = append(s.Mistakes, field.NotSupported(at, byName[name], slices.Sorted(maps.Keys(appProtocols))))
		default:
			s.Ports[i].AppProtocol = &app
		}
	}
}

func (s *MultiService) insert(o *Objects) { o.MultiServices = append(o.MultiServices, s) }

// clusterOf returns the cluster of a link.
func clusterOf(link string) string { return link[strings.LastIndexByte(link, '/')+1:] }

// Lists reports whether the pods of a cluster answer.
func (s MultiService) Lists(c clustermesh.ClusterName) bool {
	return len(s.links) == 0 || slices.ContainsFunc(s.links, func(link string) bool { return clusterOf(link) == string(c) })
}

// elsewhere returns the location of a link to a cluster if no node of the cluster is there. Nodes
// without region and zone are anywhere.
func (s MultiService) elsewhere(own clustermesh.ClusterName, nodes []clustermesh.Node) (at int, location string) {
	for i, link := range s.links {
		if clusterOf(link) != string(own) || !strings.Contains(link, "/") {
			continue
		}
		// A link may begin with words of its own, as in projects/P/locations/L/clusters/C.
		words := strings.Split(link, "/")
		if !slices.ContainsFunc(nodes, func(n clustermesh.Node) bool {
			l := n.Locality
			return l == (clustermesh.Locality{}) || l.Region != "" && slices.Contains(words, l.Region) || l.Zone != "" && slices.Contains(words, l.Zone)
		}) && len(nodes) > 0 {
			return i, strings.Join(words[:len(words)-1], "/")
		}
	}
	return 0, ""
}

// Derived is the name of its headless Service, which is also that of the import.
func (s MultiService) Derived() string { return DerivedName(s.Namespace, s.Name) }

// exportsByMulti returns the exports of the headless Services that strait made for
// MultiClusterServices, without those that are exported already. Clients in other clusters, such
// as ingress controllers, want one Service: so the import gets an address, although the Service
// that it is made from has none.
func (l *reader) exportsByMulti(wished map[clustermesh.ServiceName]bool) (out []clustermesh.Export) {
	for _, m := range l.gke.Services {
		if len(m.Mistakes) > 0 {
			continue
		}
		o := l.onGKE(gkeServiceKind, m.GKEObject)
		routing := readRouting(noted{{m.routing, o}})
		name := clustermesh.ServiceName{Namespace: m.Namespace, Name: m.Derived()}
		s := l.service(name)
		if !m.Lists(l.own) || wished[name] || s == nil || s.labels[LabelManagedBy] != ManagedBy || s.labels[LabelMultiService] != m.Name {
			continue
		}
		if why := l.stays(name); why != "" {
			o.warning(problem.NamespaceBarred, "metadata.namespace", why+": not exported", "delete the "+gkeServiceKind+", or use another namespace")
			continue
		}
		e, ok := readService(s, o)
		if !ok {
			continue
		}
		e.Service, e.Type, e.Created, e.Policy = name, clustermesh.ClusterSetIP, max(m.created, s.created), m.Title()
		e.Routing = routing
		out = append(out, e)
	}
	return out
}
