package kube

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
	mcsclient "sigs.k8s.io/mcs-api/pkg/client/clientset/versioned"

	"strait.io/strait/internal/testutil"
	"strait.io/strait/test/kubelab"
)

// within is how long what must happen may take on a busy machine, where the upstream suite gives a
// quiet one 20 s. It is no claim: TestExportIsImportedWithinTwoSeconds measures.
const within = 90 * time.Second

// still is how long what must not happen is watched for.
const still = 3 * time.Second

// member is a cluster of the clusterset, and a namespace in it.
type member struct {
	t    testing.TB
	lab  *kubelab.Lab
	name string
	ns   string
	core kubernetes.Interface
	mcs  mcsclient.Interface
}

var clients sync.Map // of the files with clusters' credentials, to func() (member, error)

// clientOf returns the clients of a cluster, made once.
func clientOf(t testing.TB, l *kubelab.Lab, cluster string) member {
	t.Helper()
	file := l.ConfigOf(cluster)
	once, _ := clients.LoadOrStore(file, sync.OnceValues(func() (member, error) {
		config, err := clientcmd.BuildConfigFromFlags("", file)
		if err != nil {
			return member{}, err
		}
		config.QPS, config.Burst = 500, 500
		core, err := kubernetes.NewForConfig(config)
		if err != nil {
			return member{}, err
		}
		mcs, err := mcsclient.NewForConfig(config)
		return member{lab: l, name: cluster, core: core, mcs: mcs}, err
	}))
	m, err := once.(func() (member, error))()
	must(t, err)
	m.t = t
	return m
}

// clusterset returns the two clusters, with a namespace of the test's own in both.
func clusterset(t *testing.T) (c1, c2 *member) {
	t.Helper()
	c1, c2 = apart(t)
	c1.makeNamespace()
	c2.makeNamespace()
	return c1, c2
}

// apart returns the two clusters, in which the namespace is still to be made.
func apart(t *testing.T) (c1, c2 *member) {
	t.Helper()
	l := theLab(t)
	ns := strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name()))
	ns = fmt.Sprintf("%s-%s", strings.Trim(ns[:min(len(ns), 50)], "-"), time.Now().Format("150405"))
	var out []*member
	for _, name := range []string{"c1", "c2"} {
		m := clientOf(t, l, name)
		m.ns = ns
		out = append(out, &m)
	}
	return out[0], out[1]
}

func (m *member) makeNamespace() {
	m.t.Helper()
	_, err := m.core.CoreV1().Namespaces().Create(m.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: m.ns}}, metav1.CreateOptions{})
	must(m.t, err)
	m.t.Cleanup(func() {
		err := m.core.CoreV1().Namespaces().Delete(context.Background(), m.ns, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			m.t.Error(err)
		}
	})
}

// service is the conformance suite's: two ports of one number, and marks that must not leak.
func service(edits ...func(*corev1.Service)) *corev1.Service {
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "hello", Labels: map[string]string{"dummy-svc": "dummy"}, Annotations: map[string]string{"dummy-svc": "dummy"}},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": "hello"},
			Ports: []corev1.ServicePort{
				{Name: "tcp", Protocol: corev1.ProtocolTCP, Port: 42},
				{Name: "udp", Protocol: corev1.ProtocolUDP, Port: 42},
			},
		},
	}
	for _, edit := range edits {
		edit(s)
	}
	return s
}

func ports(ps ...corev1.ServicePort) func(*corev1.Service) {
	return func(s *corev1.Service) { s.Spec.Ports = ps }
}

func headless(s *corev1.Service) { s.Spec.ClusterIP = corev1.ClusterIPNone }

func named(name string) func(*corev1.Service) { return func(s *corev1.Service) { s.Name = name } }

// serve makes a Service.
func (m *member) serve(s *corev1.Service) *corev1.Service {
	m.t.Helper()
	made, err := m.core.CoreV1().Services(m.ns).Create(m.t.Context(), s.DeepCopy(), metav1.CreateOptions{})
	must(m.t, err)
	return made
}

// export makes a ServiceExport of a name.
func (m *member) export(name string, edits ...func(*mcsv1beta1.ServiceExport)) {
	m.t.Helper()
	e := &mcsv1beta1.ServiceExport{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, edit := range edits {
		edit(e)
	}
	_, err := m.mcs.MulticlusterV1beta1().ServiceExports(m.ns).Create(m.t.Context(), e, metav1.CreateOptions{})
	must(m.t, err)
}

func (m *member) unexport(name string) {
	m.t.Helper()
	must(m.t, m.mcs.MulticlusterV1beta1().ServiceExports(m.ns).Delete(m.t.Context(), name, metav1.DeleteOptions{}))
}

// imported waits until a ServiceImport is there and passes the checks, and returns it.
func (m *member) imported(name string, checks ...func(*mcsv1beta1.ServiceImport) error) (i *mcsv1beta1.ServiceImport) {
	m.t.Helper()
	testutil.Eventually(m.t, within, func() error {
		var err error
		i, err = m.mcs.MulticlusterV1beta1().ServiceImports(m.ns).Get(m.t.Context(), name, metav1.GetOptions{})
		for _, check := range append([]func(*mcsv1beta1.ServiceImport) error{ready}, checks...) {
			if err == nil {
				err = check(i)
			}
		}
		return m.wrap(err)
	})
	return i
}

// ready is what every import becomes.
func ready(i *mcsv1beta1.ServiceImport) error {
	return condition(i.Status.Conditions, "Ready", "True", "Ready")
}

// from checks the exporters of an import.
func from(clusters ...string) func(*mcsv1beta1.ServiceImport) error {
	return func(i *mcsv1beta1.ServiceImport) error {
		var have []string
		for _, c := range i.Status.Clusters {
			have = append(have, c.Cluster)
		}
		return equal("status.clusters", have, clusters)
	}
}

func equal(what string, have, want any) error {
	if h, w := fmt.Sprintf("%+v", have), fmt.Sprintf("%+v", want); h != w {
		return fmt.Errorf("%s: %s, want %s", what, h, w)
	}
	return nil
}

func (m *member) wrap(err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", m.name, err)
	}
	return nil
}

// gone waits until there is no ServiceImport of a name, nor anything made for it.
func (m *member) gone(name string) {
	m.t.Helper()
	testutil.Eventually(m.t, within, func() error { return m.wrap(m.absent(name)) })
}

func (m *member) absent(name string) error {
	_, err := m.mcs.MulticlusterV1beta1().ServiceImports(m.ns).Get(m.t.Context(), name, metav1.GetOptions{})
	if err == nil {
		return fmt.Errorf("ServiceImport %s is there", name)
	} else if !apierrors.IsNotFound(err) {
		return err
	}
	services, err := m.core.CoreV1().Services(m.ns).List(m.t.Context(), metav1.ListOptions{LabelSelector: "strait.io/service-import=" + name})
	if err != nil {
		return err
	}
	if n := len(services.Items); n > 0 {
		return fmt.Errorf("%d derived Services of %s are there", n, name)
	}
	slices, err := m.core.DiscoveryV1().EndpointSlices(m.ns).List(m.t.Context(), metav1.ListOptions{LabelSelector: discoveryv1.LabelManagedBy + "=strait.io"})
	if err != nil {
		return err
	}
	for _, s := range slices.Items {
		if s.Labels[mcsv1beta1.LabelServiceName] == name || s.Labels["strait.io/service-import"] == name {
			return fmt.Errorf("EndpointSlice %s of %s is there", s.Name, name)
		}
	}
	return nil
}

// exportHas waits until an export has a condition, and returns its message.
func (m *member) exportHas(name, kind, status, reason string) (message string) {
	m.t.Helper()
	testutil.Eventually(m.t, within, func() error {
		e, err := m.mcs.MulticlusterV1beta1().ServiceExports(m.ns).Get(m.t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, c := range e.Status.Conditions {
			if c.Type == kind {
				message = c.Message
			}
		}
		return m.wrap(condition(e.Status.Conditions, kind, status, reason))
	})
	return message
}

func condition(have []metav1.Condition, kind, status, reason string) error {
	for _, c := range have {
		if c.Type == kind && string(c.Status) == status && c.Reason == reason {
			return nil
		}
	}
	return fmt.Errorf("conditions %+v: want %s=%s, %s", have, kind, status, reason)
}

// remains fails the test if something stops being so while a decision would have had time to come.
func remains(t testing.TB, check func() error) {
	t.Helper()
	for end := time.Now().Add(still); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if err := check(); err != nil {
			t.Fatal(err)
		}
	}
}

// importSlices are the slices of an import that name their cluster; those behind the derived Service are not.
func (m *member) importSlices(name string) ([]discoveryv1.EndpointSlice, error) {
	list, err := m.core.DiscoveryV1().EndpointSlices(m.ns).List(m.t.Context(), metav1.ListOptions{LabelSelector: mcsv1beta1.LabelServiceName + "=" + name})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}
