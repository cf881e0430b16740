package object

import (
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/problem"
)

// say notes an object as the cluster's record carries it.
func (g *GKEObject) say(annotations map[string]string, spec map[string]any) {
	text, err := json.Marshal(spec)
	if err != nil || spec == nil {
		return // it has mistakes
	}
	g.said = clustermesh.ConfigObject{
		Kind: g.Kind + ".networking.gke.io", Name: g.service(), Annotations: annotations, Spec: string(text), Created: g.created,
	}
}

// config returns the cluster's own objects, for clusters that accept its configuration. Those with
// mistakes do nothing here, so they do nothing there.
func (l *reader) config() []clustermesh.ConfigObject {
	var all []clustermesh.ConfigObject
	add := func(g GKEObject) {
		if len(g.Mistakes) == 0 && g.said.Kind != "" { // empty for another cluster's
			all = append(all, g.said)
		}
	}
	for _, s := range l.gke.Services {
		add(s.GKEObject)
	}
	for _, i := range l.gke.Ingresses {
		add(i.GKEObject)
	}
	fit, rest := clustermesh.FitConfig(all)
	for i, err := range rest {
		l.report.on(all[i].Kind, all[i].Name.Namespace, all[i].Name.Name).warning(problem.ConfigUnused, "",
			"does nothing in clusters that accept this one's configuration: "+err.Error(), "make it smaller, or apply it in these clusters too")
	}
	return fit
}

// ReadConfig reads the objects of another cluster whose configuration is accepted. Insert those of the
// first such cluster first. Kinds that are not known are for newer builds.
func ReadConfig(c clustermesh.ClusterConfig) (out []Kept) {
	for _, x := range c.Objects {
		var spec map[string]any
		err := utiljson.Unmarshal([]byte(x.Spec), &spec)
		o := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
		kind, group, _ := strings.Cut(x.Kind, ".")
		o.SetAPIVersion(group + "/v1")
		o.SetKind(kind)
		o.SetNamespace(x.Name.Namespace)
		o.SetName(x.Name.Name)
		o.SetAnnotations(x.Annotations)
		var g *GKEObject
		switch x.Kind {
		case gkeServiceKind:
			s := multiServiceFrom(o)
			g, out = &s.GKEObject, append(out, s)
		case gkeIngressKind:
			i := multiIngressFrom(o)
			g, out = &i.GKEObject, append(out, i)
		default:
			continue
		}
		g.From, g.created, g.said = c.Cluster, max(0, x.Created), clustermesh.ConfigObject{}
		if err != nil {
			g.Mistakes = field.ErrorList{field.Invalid(field.NewPath("spec"), fmt.Sprintf("%.40q", x.Spec), err.Error())}
		}
	}
	return out
}
