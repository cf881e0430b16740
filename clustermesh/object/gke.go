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
	// LabelConfigCluster names the cluster whose object something was made for, if it is another one.
	LabelConfigCluster = "strait.io/config-cluster"
)

// GKEObject is what is kept of an object of networking.gke.io besides its spec. An object with
// mistakes does nothing.
type GKEObject struct {
	ID
	APIVersion, Kind     string
	UID, ResourceVersion string
	Generation           int64
	Mistakes             field.ErrorList
	// From is the cluster that has the object, if that is another one.
	From clustermesh.ClusterName
	// said is the object as the cluster's record carries it; empty if From is not.
	said clustermesh.ConfigObject
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

// GKE are the objects of networking.gke.io that a cluster carries out, sorted by their names.
type GKE struct {
	Services  []MultiService
	Ingresses []MultiIngress
	// unused are objects of other clusters whose name is taken.
	unused []unused
}

// unused is an object that does not count, because another cluster, or this one, has one of its name.
type unused struct {
	GKEObject
	by clustermesh.ClusterName // empty if it is this one
}

// Title names an object for people, in one word that a record can carry: "shop/cart", or "us/shop/cart"
// for another cluster's.
func (g GKEObject) Title() string {
	title := g.Namespace + "/" + g.Name
	if g.From != "" {
		title = string(g.From) + "/" + title
	}
	return title
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
// carries out. All else in the object is a mistake: nothing is left out in silence. Names are
// the annotations that count.
func gkeFrom(in *unstructured.Unstructured, spec any, names []string) GKEObject {
	out := GKEObject{
		ID: idOf(in), APIVersion: in.GetAPIVersion(), Kind: in.GetKind(), UID: string(in.GetUID()), ResourceVersion: in.GetResourceVersion(),
		Generation: in.GetGeneration(), created: createdAt(in),
	}
	has, _, _ := unstructured.NestedMap(in.Object, "spec")
	out.say(only(in.GetAnnotations(), names), has)
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

// ReadGKE returns the objects of networking.gke.io, with all that is wrong with each. Of several of one
// name, the cluster's own counts, else the first.
func ReadGKE(objs Objects) (out GKE) {
	barred := clustermesh.Barred(objs.Config.BarredPatterns)
	judge := func(g *GKEObject) {
		if why := barred.Why(g.service()); why != "" {
			g.Mistakes = append(slices.Clone(g.Mistakes), field.Forbidden(field.NewPath("metadata", "namespace"), why))
		}
	}
	services := first(&out, objs.MultiServices, func(s *MultiService) GKEObject { return s.GKEObject })
	ingresses := first(&out, objs.MultiIngresses, func(i *MultiIngress) GKEObject { return i.GKEObject })
	for _, s := range services {
		s := *s
		judge(&s.GKEObject)
		out.Services = append(out.Services, s)
	}
	slices.SortFunc(out.Services, func(a, b MultiService) int { return a.service().Compare(b.service()) })
	for _, i := range ingresses {
		i := *i
		judge(&i.GKEObject)
		i.Mistakes = append(slices.Clone(i.Mistakes), i.unresolved(out)...)
		out.Ingresses = append(out.Ingresses, i)
	}
	slices.SortFunc(out.Ingresses, func(a, b MultiIngress) int { return a.service().Compare(b.service()) })
	return out
}

// first returns the objects that count, and notes the others.
func first[T any](out *GKE, all []T, of func(T) GKEObject) (kept []T) {
	owners := map[ID]clustermesh.ClusterName{}
	for _, own := range []bool{true, false} {
		for _, o := range all {
			g := of(o)
			if own != (g.From == "") {
				continue
			}
			if by, taken := owners[g.ID]; taken {
				out.unused = append(out.unused, unused{g, by})
				continue
			}
			owners[g.ID] = g.From
			kept = append(kept, o)
		}
	}
	return kept
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
			l.onGKE(kind, g).problem(problem.ValueInvalid, m.Field, m.ErrorBody()+": the object does nothing", "correct it, or leave the field out")
		}
	}
	for _, s := range l.gke.Services {
		report(gkeServiceKind, s.GKEObject)
		if at, location := s.elsewhere(l.own, nodes); location != "" {
			l.onGKE(gkeServiceKind, s.GKEObject).warning(problem.ValueInvalid, fmt.Sprintf("spec.clusters[%d].link", at),
				fmt.Sprintf("%q is no region or zone of a node of cluster %s: only the cluster's id counts", location, l.own), "write the region or a zone of the cluster")
		}
	}
	for _, i := range l.gke.Ingresses {
		report(gkeIngressKind, i.GKEObject)
	}
	for _, u := range l.gke.unused {
		owner := "this cluster"
		if u.by != "" {
			owner = "cluster " + string(u.by)
		}
		l.onGKE(u.Kind+".networking.gke.io", u.GKEObject).warning(problem.ConfigUnused, "",
			fmt.Sprintf("is not used: %s has one of this name, which goes before it", owner), "delete one of the two")
	}
}

// onGKE returns a report for the problems of an object, which may be another cluster's.
func (l *reader) onGKE(kind string, g GKEObject) *objectReport {
	name := g.Name
	if g.From != "" {
		name += " of cluster " + string(g.From)
	}
	return l.report.on(kind, g.Namespace, name)
}
