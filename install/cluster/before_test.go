package cluster

import (
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic/fake"
	k8stesting "k8s.io/client-go/testing"
)

// TestMayNotCreate: what the API server does not allow is listed once, with its namespace if it has one. A
// kind that it does not know is left out.
func TestMayNotCreate(t *testing.T) {
	objects := fake.NewSimpleDynamicClient(runtime.NewScheme())
	asked := 0
	objects.PrependReactor("create", "selfsubjectaccessreviews", func(a k8stesting.Action) (bool, runtime.Object, error) {
		asked++
		o := a.(k8stesting.CreateAction).GetObject().(*unstructured.Unstructured).DeepCopy()
		what, _, _ := unstructured.NestedString(o.Object, "spec", "resourceAttributes", "resource")
		verb, _, _ := unstructured.NestedString(o.Object, "spec", "resourceAttributes", "verb")
		_ = unstructured.SetNestedField(o.Object, verb == "create" && what == "configmaps", "status", "allowed")
		return true, o, nil
	})
	kinds := meta.NewDefaultRESTMapper(nil)
	kinds.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
	kinds.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	kinds.Add(appsv1.SchemeGroupVersion.WithKind("DaemonSet"), meta.RESTScopeNamespace)
	c := &Cluster{Context: "c1", objects: objects, kinds: noReset{kinds}}
	var docs [][]byte
	for _, kind := range []string{"v1 Namespace", "v1 ConfigMap", "apps/v1 DaemonSet", "apps/v1 DaemonSet", "strait.io/v1alpha1 ServicePolicy"} {
		version, name, _ := strings.Cut(kind, " ")
		docs = append(docs, []byte("apiVersion: "+version+"\nkind: "+name+"\nmetadata: {name: x, namespace: ns}\n"))
	}
	got, err := c.MayNotCreate(t.Context(), docs)
	if want := []string{"daemonsets.apps in namespace ns", "namespaces"}; err != nil || !slices.Equal(got, want) || asked != 3 {
		t.Errorf("%q after %d questions, %v; want %q after 3", got, asked, err, want)
	}
}

// TestWaitEach: pods that run are told from those that do not, by their nodes, also if a pod is not
// scheduled.
func TestWaitEach(t *testing.T) {
	pod := func(node string, ready bool, change func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
			ObjectMeta: metav1.ObjectMeta{Name: "p-" + node, Namespace: "trial", Labels: map[string]string{"strait.io/test": "true"}}}
		p.Spec.NodeName = node
		if ready {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		}
		if change != nil {
			change(p)
		}
		return p
	}
	unscheduled := func(p *corev1.Pod) {
		p.Spec.NodeName = ""
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: "In", Values: []string{"n3"}}}}}}}}
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "no room"}}
	}
	pulling := func(p *corev1.Pod) {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull"}}}}
	}
	ds := &appsv1.DaemonSet{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DaemonSet"}, ObjectMeta: metav1.ObjectMeta{Name: "d", Namespace: "trial"}}
	ds.Status.DesiredNumberScheduled = 3
	trial := trialIn(ds, pod("n2", true, nil), pod("n1", false, pulling), pod("n3", false, unscheduled))
	ready, missing, err := trial.WaitEach(t.Context(), "d", 10*time.Millisecond)
	if err != nil || len(ready) != 1 || ready[0].Node != "n2" || len(missing) != 2 || missing["n1"] != "ErrImagePull" || !strings.Contains(missing["n3"], "no room") {
		t.Errorf("%+v, %v, %v", ready, missing, err)
	}
	if served, err := trial.ServedExports(); err != nil || !slices.Equal(served, []string{"v1beta1"}) {
		t.Errorf("%q, %v", served, err)
	}
}
