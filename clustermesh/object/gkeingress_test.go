package object

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func rules(paths ...string) map[string]any {
	var list []any
	for _, p := range paths {
		list = append(list, map[string]any{"path": p, "backend": map[string]any{"serviceName": "cart", "servicePort": "web"}})
	}
	return templated(map[string]any{"rules": []any{map[string]any{"host": "a.example", "http": map[string]any{"paths": list}}}})
}

// TestMultiIngress: the Ingress that a MultiClusterIngress becomes, and what it asks for that is
// not carried out.
func TestMultiIngress(t *testing.T) {
	const at = "spec.template.spec."
	for what, c := range map[string]struct {
		in       *unstructured.Unstructured
		want     string
		problems []string
	}{
		"backend":         {in: multiIngress(backend("cart", int64(80))), want: "*>derived:80"},
		"backend by name": {in: multiIngress(backend("cart", "web")), want: "*>derived:80"},
		"rules":           {in: multiIngress(rules("", "/", "/x", "/x/*", "/*", "/a/b/*")), want: "a.example[/ Prefix>derived:80 / Exact>derived:80 /x Exact>derived:80 /x Prefix>derived:80 / Prefix>derived:80 /a/b Prefix>derived:80]"},
		"a glob":          {in: multiIngress(rules("/x*")), problems: []string{at + "rules[0].http.paths[0].path"}},
		"a glob inside":   {in: multiIngress(rules("/", "/a/*/b/*")), problems: []string{at + "rules[0].http.paths[1].path"}},
		"a host alone": {in: multiIngress(with(backend("cart", int64(80)), []any{map[string]any{"host": "b.example"}}, "template", "spec", "rules")),
			want: "*>derived:80 b.example[]"},
		"tls": {in: multiIngress(with(backend("cart", int64(80)), []any{map[string]any{"hosts": []any{"a.example"}, "secretName": "cert"}}, "template", "spec", "tls")),
			want: "*>derived:80 tls[a.example]=cert"},
		"class":         {in: annotatedWith(multiIngress(backend("cart", int64(80))), AnnotationIngressClass, "nginx"), want: "nginx *>derived:80"},
		"nothing":       {in: multiIngress(templated(map[string]any{})), problems: []string{at + "backend"}},
		"no spec":       {in: multiIngress(nil), problems: []string{at + "backend"}},
		"no service":    {in: multiIngress(backend("other", int64(80))), problems: []string{at + "backend.serviceName"}},
		"no port":       {in: multiIngress(backend("cart", int64(81))), problems: []string{at + "backend.servicePort"}},
		"no named port": {in: multiIngress(backend("cart", "grpc")), problems: []string{at + "backend.servicePort"}},
		"wrong service": {in: multiIngress(backend("wrong", int64(80))), problems: []string{at + "backend.serviceName"}},
		"no path's":     {in: multiIngress(with(rules("/"), "", "template", "spec", "ingressClassName")), problems: []string{at + "ingressClassName"}},
		"a backend of networking.k8s.io/v1": {in: multiIngress(with(backend("cart", int64(80)), map[string]any{"name": "cart"}, "template", "spec", "backend", "service")),
			problems: []string{at + "backend.service"}},
		"pathType": {in: multiIngress(templated(map[string]any{"rules": []any{map[string]any{"http": map[string]any{"paths": []any{
			map[string]any{"path": "/", "pathType": "Exact", "backend": map[string]any{"serviceName": "cart", "servicePort": int64(80)}}}}}}})),
			problems: []string{at + "rules[0].http.paths[0].pathType"}},
		"static-ip":        {in: annotatedWith(multiIngress(backend("cart", int64(80))), "networking.gke.io/static-ip", "192.0.2.1"), problems: []string{"metadata.annotations[networking.gke.io/static-ip]"}},
		"pre-shared-certs": {in: annotatedWith(multiIngress(backend("cart", int64(80))), "networking.gke.io/pre-shared-certs", "c"), problems: []string{"metadata.annotations[networking.gke.io/pre-shared-certs]"}},
		"frontend-config":  {in: annotatedWith(multiIngress(backend("cart", int64(80))), "networking.gke.io/frontend-config", "f"), problems: []string{"metadata.annotations[networking.gke.io/frontend-config]"}},
		"allow-http":       {in: annotatedWith(multiIngress(backend("cart", int64(80))), "kubernetes.io/ingress.allow-http", "false"), problems: []string{"metadata.annotations[kubernetes.io/ingress.allow-http]"}},
	} {
		objs := Objects{Config: Config{Cluster: "east"}}
		objs.Insert(multiServiceFrom(multiService(selecting)))
		objs.Insert(multiServiceFrom(gkeObject("MultiClusterService", "wrong", with(selecting, "x", "template", "spec", "type"))))
		objs.Insert(multiIngressFrom(c.in))
		problems := fieldsOf(Local(objs).Problems, gkeIngressKind+" shop/front")
		got, all := "", ReadGKE(objs)
		if i := all.Ingresses[0]; len(i.Mistakes) == 0 {
			got = ingressText(i.Standard(all, func(s MultiService) string { return "derived" }))
		}
		if got != c.want || !slices.Equal(problems, c.problems) {
			t.Errorf("%s: %q, problems with %q; want %q and %q", what, got, problems, c.want, c.problems)
		}
	}
}

func ingressText(s *networkingv1.IngressSpec) string {
	to := func(b networkingv1.IngressBackend) string {
		return fmt.Sprintf(">%s:%d%s", b.Service.Name, b.Service.Port.Number, b.Service.Port.Name)
	}
	var out []string
	if s.IngressClassName != nil {
		out = append(out, *s.IngressClassName)
	}
	if s.DefaultBackend != nil {
		out = append(out, "*"+to(*s.DefaultBackend))
	}
	for _, r := range s.Rules {
		var paths []string
		if r.HTTP != nil {
			for _, p := range r.HTTP.Paths {
				paths = append(paths, p.Path+" "+string(*p.PathType)+to(p.Backend))
			}
		}
		out = append(out, fmt.Sprint(r.Host, paths))
	}
	for _, t := range s.TLS {
		out = append(out, fmt.Sprint("tls", t.Hosts, "=", t.SecretName))
	}
	return strings.Join(out, " ")
}
