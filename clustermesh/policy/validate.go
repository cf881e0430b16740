package policy

import (
	"path"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"strait.io/strait/clustermesh"
)

// maxRegex bounds a regular expression, in bytes.
const maxRegex = 256

// all stands for every cluster.
const all = "*"

// Validate returns what is wrong with a policy, each mistake with the path of its field.
func Validate(p Policy) (errs field.ErrorList) {
	if p.APIVersion != APIVersion {
		errs = append(errs, field.NotSupported(field.NewPath("apiVersion"), p.APIVersion, []string{APIVersion}))
	}
	if p.Kind != Kind {
		errs = append(errs, field.NotSupported(field.NewPath("kind"), p.Kind, []string{Kind}))
	}
	if bad := validation.IsDNS1123Label(p.Name); len(bad) > 0 {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), p.Name, bad[0]))
	}
	if p.Namespace != "" {
		errs = append(errs, field.Forbidden(field.NewPath("metadata", "namespace"), "a "+Kind+" has none: it is about the whole cluster"))
	}
	at := field.NewPath("spec")
	errs = append(errs, clusters(at.Child("from"), p.Spec.From)...)
	errs = append(errs, clusters(at.Child("to"), p.Spec.To)...)
	errs = append(errs, terms(at.Child("select"), p.Spec.Select)...)
	return append(errs, result(p.Spec, at)...)
}

func clusters(at *field.Path, ids []string) (errs field.ErrorList) {
	if len(ids) == 0 {
		errs = append(errs, field.Required(at, `name the clusters, or "*" for all`))
	}
	for i, id := range ids {
		if bad := validation.IsDNS1123Label(id); id != all && len(bad) > 0 {
			errs = append(errs, field.Invalid(at.Index(i), id, `want the id of a cluster, or "*": `+bad[0]))
		}
	}
	return errs
}

func terms(at *field.Path, terms []Term) (errs field.ErrorList) {
	if len(terms) == 0 {
		errs = append(errs, field.Required(at, "list the Services; all of a namespace: {namespaces: [NAME]}"))
	}
	for i, t := range terms {
		at := at.Index(i)
		if len(t.Namespaces)+len(t.Names) == 0 && t.Labels == nil {
			errs = append(errs, field.Required(at, "an empty term would mean nothing in one system and everything in another; all Services are {names: ['.*']}"))
		}
		for j, ns := range t.Namespaces {
			if bad := validation.IsDNS1123Label(ns); len(bad) > 0 {
				errs = append(errs, field.Invalid(at.Child("namespaces").Index(j), ns, bad[0]))
			} else if why := clustermesh.Barred(nil).Why(clustermesh.ServiceName{Namespace: ns, Name: "any"}); why != "" {
				errs = append(errs, field.Forbidden(at.Child("namespaces").Index(j), why))
			}
		}
		for j, name := range t.Names {
			at := at.Child("names").Index(j)
			if len(name) > maxRegex {
				errs = append(errs, field.TooLong(at, "", maxRegex))
			} else if _, err := regexp.Compile(name); err != nil {
				errs = append(errs, field.Invalid(at, name, err.Error()))
			}
		}
		if _, err := metav1.LabelSelectorAsSelector(t.Labels); err != nil {
			errs = append(errs, field.Invalid(at.Child("labels"), "", err.Error()))
		}
	}
	return errs
}

// result checks what the Services become.
func result(s Spec, at *field.Path) (errs field.ErrorList) {
	oneOf := func(name, value string, allowed ...string) {
		if value != "" && !slices.Contains(allowed, value) {
			errs = append(errs, field.NotSupported(at.Child(name), value, allowed))
		}
	}
	oneOf("as", string(s.As), string(Import), string(Mirror), string(Join))
	oneOf("endpoints", string(s.Endpoints), string(Pods), string(ClusterIP))
	oneOf("exposeAs", s.ExposeAs, "ClusterIP", "NodePort", "LoadBalancer")
	errs = append(errs, template(at.Child("name"), s.Name)...)
	errs = append(errs, template(at.Child("namespace"), s.Namespace)...)
	forbidden := func(name string, set bool, why string) {
		if set {
			errs = append(errs, field.Forbidden(at.Child(name), why))
		}
	}
	switch s.As {
	case Join:
		const why = "as: join adds to the Service that is there, so it makes nothing"
		forbidden("name", s.Name != "" && s.Name != "{name}", why)
		forbidden("namespace", s.Namespace != "" && s.Namespace != "{namespace}", why)
		forbidden("createNamespace", s.CreateNamespace, why)
		forbidden("exposeAs", s.ExposeAs != "", why)
		forbidden("copy", len(s.Copy.Labels)+len(s.Copy.Annotations) > 0, why)
		forbidden("endpoints", s.Endpoints == ClusterIP, why)
	case Import, "":
		forbidden("endpoints", s.Endpoints == ClusterIP, "as: import leads to pods")
		forbidden("name", s.Name != "" && s.Name != "{name}", "as: import keeps the name; a Service of another name is as: mirror")
		forbidden("exposeAs", s.ExposeAs != "" && s.ExposeAs != "ClusterIP", "as: import makes Services of type ClusterIP; another type takes as: mirror")
		forbidden("namespace", s.Namespace != "" && s.Namespace != "{namespace}",
			"as: import keeps the namespace: a namespace means the same in all clusters (KEP-1645)")
	}
	for _, f := range []struct {
		name     string
		patterns []string
	}{{"labels", s.Copy.Labels}, {"annotations", s.Copy.Annotations}} {
		for i, pattern := range f.patterns {
			if _, err := path.Match(pattern, ""); err != nil || pattern == "" {
				errs = append(errs, field.Invalid(at.Child("copy", f.name).Index(i), pattern, "want a key or a pattern, as in app or team/*"))
			}
		}
	}
	return errs
}

// template checks a template: known variables, and a result that can be the name of a Service.
func template(at *field.Path, text string) field.ErrorList {
	if text == "" {
		return nil
	}
	plain := Expand(text, "a", "a", "a")
	if i := strings.IndexAny(plain, "{}"); i >= 0 {
		return field.ErrorList{field.Invalid(at, text, "the variables are {name}, {namespace} and {cluster}")}
	}
	if bad := validation.IsDNS1035Label(plain); len(bad) > 0 {
		return field.ErrorList{field.Invalid(at, text, "makes no name of a Service: "+bad[0])}
	}
	return nil
}

// Expand fills in a template.
func Expand(template, name, namespace, cluster string) string {
	switch template { // the defaults, for thousands of Services
	case "{name}":
		return name
	case "{namespace}":
		return namespace
	}
	return strings.NewReplacer("{name}", name, "{namespace}", namespace, "{cluster}", cluster).Replace(template)
}
