package object

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"strait.io/strait/clustermesh"
	"strait.io/strait/internal/problem"
)

// How Problems name the kinds of networking.gke.io. Karmada has kinds of the same names.
const (
	gkeServiceKind = "MultiClusterService.networking.gke.io"
	gkeIngressKind = "MultiClusterIngress.networking.gke.io"
)

const (
	// LabelMultiService names the MultiClusterService that a headless Service was made for.
	LabelMultiService = "strait.io/multi-cluster-service"
	// LabelMultiIngress names the MultiClusterIngress that an Ingress was made for.
	LabelMultiIngress = "strait.io/multi-cluster-ingress"
)

// GKEObject is what is kept of an object of networking.gke.io besides its spec. An object with
// mistakes does nothing.
type GKEObject struct {
	ID
	APIVersion, Kind     string
	UID, ResourceVersion string
	Generation           int64
	Mistakes             field.ErrorList
	// Was is the status that the object has.
	Was     GKEStatus
	created int64 // in Unix seconds, 0 for none
}

// GKEStatus is what the leader of a cluster writes into the object of its own API server.
type GKEStatus struct {
	// VIP is the address of the Ingress.
	VIP        string             `json:"VIP,omitempty"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// GKE are the objects of networking.gke.io of a cluster, sorted by their names.
type GKE struct {
	Services  []MultiService
	Ingresses []MultiIngress
}

// DerivedName returns the name of the headless Service of a MultiClusterService. Like GKE's, it
// depends on the namespace and the name only.
func DerivedName(namespace, name string) string {
	const keep, length = 38, 16
	sum := sha256.Sum256([]byte(namespace + "/" + name))
	hash := strings.ToLower(base32.HexEncoding.EncodeToString(sum[:])[:length])
	return "mci-" + name[:min(len(name), keep)] + "-svc-" + hash
}

// gkeFrom reads an object: its spec into a Go value that has a field for everything that strait
// carries out. All else that the object says is a mistake: nothing is left out in silence.
func gkeFrom(in *unstructured.Unstructured, spec any) GKEObject {
	out := GKEObject{
		ID: idOf(in), APIVersion: in.GetAPIVersion(), Kind: in.GetKind(), UID: string(in.GetUID()), ResourceVersion: in.GetResourceVersion(),
		Generation: in.GetGeneration(), created: createdAt(in),
	}
	has, _, _ := unstructured.NestedMap(in.Object, "spec")
	err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(map[string]any{"spec": has}, spec, true)
	if strict, is := runtime.AsStrictDecodingError(err); is {
		for _, e := range strict.Errors() {
			_, path, _ := strings.Cut(e.Error(), `"`)
			out.forbid(strings.TrimSuffix(path, `"`), "strait does not carry this out")
		}
	} else if err != nil {
		out.Mistakes = append(out.Mistakes, field.Invalid(field.NewPath("spec"), "", err.Error()))
	}
	if bad := validation.IsDNS1123Label(out.Name); len(bad) > 0 {
		out.Mistakes = append(out.Mistakes, field.Invalid(field.NewPath("metadata", "name"), out.Name, "what is made for it has it as a label: "+bad[0]))
	}
	if status, is := in.Object["status"].(map[string]any); is {
		// What is not as strait writes it is written again.
		_ = runtime.DefaultUnstructuredConverter.FromUnstructured(status, &out.Was)
	}
	return out
}

// forbid notes what the object asks for and strait does not do.
func (g *GKEObject) forbid(path, why string) {
	g.Mistakes = append(g.Mistakes, field.Forbidden(field.NewPath(path), why))
}

// forbidAnnotations notes the annotations that are for Google's load balancer.
func (g *GKEObject) forbidAnnotations(has, why map[string]string) {
	for key := range has {
		if w, is := why[key]; is {
			g.Mistakes = append(g.Mistakes, field.Forbidden(field.NewPath("metadata", "annotations").Key(key), w))
		}
	}
	slices.SortFunc(g.Mistakes, func(a, b *field.Error) int { return strings.Compare(a.Error(), b.Error()) })
}

// ReadGKE returns the objects of networking.gke.io, with all that is wrong with each.
func ReadGKE(objs Objects) (out GKE) {
	barred := clustermesh.Barred(objs.Config.BarredPatterns)
	judge := func(g *GKEObject) {
		if why := barred.Why(g.service()); why != "" {
			g.Mistakes = append(slices.Clone(g.Mistakes), field.Forbidden(field.NewPath("metadata", "namespace"), why))
		}
	}
	for _, s := range objs.MultiServices {
		s := *s
		judge(&s.GKEObject)
		out.Services = append(out.Services, s)
	}
	slices.SortFunc(out.Services, func(a, b MultiService) int { return a.service().Compare(b.service()) })
	for _, i := range objs.MultiIngresses {
		i := *i
		judge(&i.GKEObject)
		i.Mistakes = append(slices.Clone(i.Mistakes), i.unresolved(out)...)
		out.Ingresses = append(out.Ingresses, i)
	}
	slices.SortFunc(out.Ingresses, func(a, b MultiIngress) int { return a.service().Compare(b.service()) })
	return out
}

// Service returns a MultiClusterService, or nil.
func (g GKE) Service(namespace, name string) *MultiService {
	i, found := slices.BinarySearchFunc(g.Services, clustermesh.ServiceName{Namespace: namespace, Name: name},
		func(s MultiService, n clustermesh.ServiceName) int { return s.service().Compare(n) })
	if !found {
		return nil
	}
	return &g.Services[i]
}

// readGKE reports what is wrong with objects of networking.gke.io.
func (l *reader) readGKE(objs Objects, nodes []clustermesh.Node) {
	l.gke = ReadGKE(objs)
	report := func(kind string, g GKEObject) {
		for _, m := range g.Mistakes {
			l.report.on(kind, g.Namespace, g.Name).problem(problem.ValueInvalid, m.Field, m.ErrorBody()+": the object does nothing", "correct it, or leave the field out")
		}
	}
	for _, s := range l.gke.Services {
		report(gkeServiceKind, s.GKEObject)
		if at, location := s.elsewhere(l.own, nodes); location != "" {
			l.report.on(gkeServiceKind, s.Namespace, s.Name).warning(problem.ValueInvalid, fmt.Sprintf("spec.clusters[%d].link", at),
				fmt.Sprintf("%q is no region or zone of a node of cluster %s: only the cluster's id counts", location, l.own), "write the region or a zone of the cluster")
		}
	}
	for _, i := range l.gke.Ingresses {
		report(gkeIngressKind, i.GKEObject)
	}
}
