package object

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// AnnotationIngressClass names the class of the Ingress that is made for a MultiClusterIngress.
const AnnotationIngressClass = "strait.io/ingress-class"

// notOfIngresses are annotations of MultiClusterIngresses for Google's load balancer. Without what
// they ask for, an application could be open that should not be, or elsewhere than where DNS leads.
var notOfIngresses = map[string]string{
	"networking.gke.io/static-ip":        "the address is that of the ingress controller's Service",
	"networking.gke.io/pre-shared-certs": "a certificate is in a Secret; write spec.template.spec.tls",
	"networking.gke.io/frontend-config":  "a FrontendConfig is for Google's load balancer; redirects and TLS policies are the ingress controller's",
	"kubernetes.io/ingress.allow-http":   "whether HTTP is served is the ingress controller's",
}

// multiIngressNames are the annotations of MultiClusterIngresses that count.
var multiIngressNames = slices.Concat([]string{AnnotationIngressClass}, slices.Sorted(maps.Keys(notOfIngresses)))

// MultiIngress is a MultiClusterIngress of networking.gke.io. The Ingress that is made from it has
// the same rules.
type MultiIngress struct {
	GKEObject
	// Spec is the Ingress', whose backends are MultiClusterServices and their ports.
	Spec networkingv1.IngressSpec
}

// multiBackend is a backend of networking.k8s.io/v1beta1, which MultiClusterIngress kept.
type multiBackend struct {
	ServiceName string             `json:"serviceName"`
	ServicePort intstr.IntOrString `json:"servicePort"`
}

func multiIngressFrom(in *unstructured.Unstructured) *MultiIngress {
	var i struct {
		Spec struct {
			Template struct {
				Spec struct {
					Backend *multiBackend `json:"backend"`
					Rules   []struct {
						Host string `json:"host"`
						HTTP struct {
							Paths []struct {
								Path    string       `json:"path"`
								Backend multiBackend `json:"backend"`
							} `json:"paths"`
						} `json:"http"`
					} `json:"rules"`
					TLS []struct {
						Hosts      []string `json:"hosts"`
						SecretName string   `json:"secretName"`
					} `json:"tls"`
				} `json:"spec"`
			} `json:"template"`
		} `json:"spec"`
	}
	out := &MultiIngress{GKEObject: gkeFrom(in, &i, multiIngressNames)}
	at, spec := field.NewPath("spec", "template", "spec"), i.Spec.Template.Spec
	if class, has := in.GetAnnotations()[AnnotationIngressClass]; has {
		out.Spec.IngressClassName = &class
	}
	if spec.Backend != nil {
		b := spec.Backend.standard()
		out.Spec.DefaultBackend = &b
	}
	if spec.Backend == nil && len(spec.Rules) == 0 {
		out.Mistakes = append(out.Mistakes, field.Required(at.Child("backend"), "write a backend, or rules"))
	}
	for n, r := range spec.Rules {
		rule := networkingv1.IngressRule{Host: r.Host}
		rule.HTTP = &networkingv1.HTTPIngressRuleValue{}
		for m, p := range r.HTTP.Paths {
			path, kind, ok := standardPath(p.Path)
			if !ok {
				out.Mistakes = append(out.Mistakes, field.Invalid(at.Child("rules").Index(n).Child("http", "paths").Index(m).Child("path"), p.Path,
					"a path is exact, or ends in /*; no other wildcards are known"))
			}
			rule.HTTP.Paths = append(rule.HTTP.Paths, networkingv1.HTTPIngressPath{Path: path, PathType: &kind, Backend: p.Backend.standard()})
		}
		if len(r.HTTP.Paths) == 0 {
			rule.HTTP = nil
		}
		out.Spec.Rules = append(out.Spec.Rules, rule)
	}
	for _, t := range spec.TLS {
		out.Spec.TLS = append(out.Spec.TLS, networkingv1.IngressTLS{Hosts: t.Hosts, SecretName: t.SecretName})
	}
	out.forbidAnnotations(in.GetAnnotations(), notOfIngresses)
	return out
}

func (i *MultiIngress) insert(o *Objects) { o.MultiIngresses = append(o.MultiIngresses, i) }

func (b multiBackend) standard() networkingv1.IngressBackend {
	s := &networkingv1.IngressServiceBackend{Name: b.ServiceName}
	if b.ServicePort.Type == intstr.String {
		s.Port.Name = b.ServicePort.StrVal
	} else {
		s.Port.Number = b.ServicePort.IntVal
	}
	return networkingv1.IngressBackend{Service: s}
}

// standardPath returns a path of Google's URL maps as one of an Ingress: /x/* is the prefix /x, a
// path without wildcard is exact, and none is everything.
func standardPath(path string) (string, networkingv1.PathType, bool) {
	prefix, wild := strings.CutSuffix(path, "/*")
	switch {
	case path == "":
		return "/", networkingv1.PathTypePrefix, true
	case strings.Contains(prefix, "*"):
		return path, networkingv1.PathTypeExact, false
	case wild:
		return cmp.Or(prefix, "/"), networkingv1.PathTypePrefix, true
	}
	return path, networkingv1.PathTypeExact, true
}

// backends calls f for each backend of the spec, with the path of its field in the
// MultiClusterIngress.
func (i MultiIngress) backends(f func(at *field.Path, b *networkingv1.IngressServiceBackend)) {
	at := field.NewPath("spec", "template", "spec")
	if b := i.Spec.DefaultBackend; b != nil {
		f(at.Child("backend"), b.Service)
	}
	for n, r := range i.Spec.Rules {
		if r.HTTP == nil {
			continue
		}
		for m := range r.HTTP.Paths {
			f(at.Child("rules").Index(n).Child("http", "paths").Index(m).Child("backend"), r.HTTP.Paths[m].Backend.Service)
		}
	}
}

// unresolved returns a mistake for each backend that is no port of a MultiClusterService of the
// namespace.
func (i MultiIngress) unresolved(all GKE) (errs field.ErrorList) {
	i.backends(func(at *field.Path, b *networkingv1.IngressServiceBackend) {
		s := all.Service(i.Namespace, b.Name)
		switch {
		case s == nil:
			errs = append(errs, field.Invalid(at.Child("serviceName"), b.Name, "this cluster has no MultiClusterService of that name in the namespace"))
		case len(s.Mistakes) > 0:
			errs = append(errs, field.Invalid(at.Child("serviceName"), b.Name, "that MultiClusterService has mistakes"))
		case s.port(b.Port) == 0:
			errs = append(errs, field.Invalid(at.Child("servicePort"), portText(b.Port), fmt.Sprintf("MultiClusterService %s has no such port", b.Name)))
		}
	})
	return errs
}

func portText(p networkingv1.ServiceBackendPort) string {
	if p.Name != "" {
		return p.Name
	}
	return fmt.Sprint(p.Number)
}

// port returns the number of a port that a backend names, 0 if there is none.
func (s *MultiService) port(b networkingv1.ServiceBackendPort) int32 {
	for _, p := range s.Ports {
		if b.Name != "" && p.Name == b.Name || b.Name == "" && p.Port == b.Number {
			return p.Port
		}
	}
	return 0
}

// Standard returns the spec of the Ingress. Backend returns the Service behind which the pods of
// all clusters are.
func (i MultiIngress) Standard(all GKE, backend func(MultiService) string) *networkingv1.IngressSpec {
	i.Spec = *i.Spec.DeepCopy()
	i.backends(func(_ *field.Path, b *networkingv1.IngressServiceBackend) {
		if s := all.Service(i.Namespace, b.Name); s != nil {
			*b = networkingv1.IngressServiceBackend{Name: backend(*s), Port: networkingv1.ServiceBackendPort{Number: s.port(b.Port)}}
		}
	})
	return &i.Spec
}
