package writer

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/mcs"
	"strait.io/strait/internal/testutil"
)

// A derived Service that a user deletes is made again with the addresses that it had, unless another has them by now.
func TestAddressOutlivesTheDerivedService(t *testing.T) {
	b := newBench(t)
	w, stop := b.start()
	w.Submit(b.view())
	i := b.eventually("import", ready)
	derived := b.core.CoreV1().Services(b.ns)
	for range 5 { // each is a race against the API server, which gives the address up after it has reported the end
		old, err := derived.Get(t.Context(), "derived-serve", metav1.GetOptions{})
		must(t, err)
		must(t, derived.Delete(t.Context(), "derived-serve", metav1.DeleteOptions{}))
		testutil.Eventually(t, 10*time.Second, func() error {
			s, err := derived.Get(t.Context(), "derived-serve", metav1.GetOptions{})
			if err == nil && (s.UID == old.UID || !slices.Equal(s.Spec.ClusterIPs, i.Spec.IPs)) {
				err = fmt.Errorf("ClusterIPs %v, were %v", s.Spec.ClusterIPs, i.Spec.IPs)
			}
			return err
		})
	}
	b.calm(w)
	// Later writes, which say nothing of addresses, leave them.
	w.Submit(b.view(func(i *mcs.Import) { i.AffinitySeconds = 7 }))
	testutil.Eventually(t, 10*time.Second, func() error {
		s, err := derived.Get(t.Context(), "derived-serve", metav1.GetOptions{})
		if err == nil && (s.Spec.SessionAffinity != corev1.ServiceAffinityClientIP || !slices.Equal(s.Spec.ClusterIPs, i.Spec.IPs)) {
			err = fmt.Errorf("spec %+v", s.Spec)
		}
		return err
	})
	stop()

	must(t, derived.Delete(t.Context(), "derived-serve", metav1.DeleteOptions{}))
	_, err := derived.Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "quick"}, Spec: corev1.ServiceSpec{ClusterIP: i.Spec.IPs[0], Ports: []corev1.ServicePort{{Port: 9}}},
	}, metav1.CreateOptions{})
	must(t, err)
	w, _ = b.start()
	w.Submit(b.view())
	b.eventually("another address", func(now *mcsv1beta1.ServiceImport) error {
		if slices.Equal(now.Spec.IPs, i.Spec.IPs) {
			return fmt.Errorf("ips %v", now.Spec.IPs)
		}
		return ready(now)
	})
	b.calm(w)
}

// With an empty prefix the derived Service has the import's own name, unless that is taken.
func TestDerivedServiceOfTheImportsName(t *testing.T) {
	b := newBench(t)
	w, stop := b.start()
	w.Submit(b.view())
	b.eventually("import", ready)
	own := b.view()
	own.Exports = nil
	own.Config.DerivedPrefix = new("")
	w.Submit(own)
	only := func(name string) {
		t.Helper()
		testutil.Eventually(t, 10*time.Second, func() error {
			list, err := b.core.CoreV1().Services(b.ns).List(t.Context(), metav1.ListOptions{LabelSelector: "strait.io/service-import=serve"})
			must(t, err)
			eps, err := b.core.DiscoveryV1().EndpointSlices(b.ns).List(t.Context(), metav1.ListOptions{LabelSelector: "kubernetes.io/service-name"})
			must(t, err)
			i, err := b.mcs.MulticlusterV1beta1().ServiceImports(b.ns).Get(t.Context(), "serve", metav1.GetOptions{})
			must(t, err)
			if len(list.Items) != 1 || list.Items[0].Name != name || len(eps.Items) != 2 || eps.Items[0].Labels["kubernetes.io/service-name"] != name ||
				!slices.Equal(i.Spec.IPs, list.Items[0].Spec.ClusterIPs) || i.Annotations[mcs.DerivedAnnotation] != name {
				return fmt.Errorf("import %+v, Services %v, slices %v", i, list.Items, eps.Items)
			}
			return ready(i)
		})
		b.calm(w)
	}
	only("serve")
	w.Submit(b.view())
	only("derived-serve")
	stop()

	theirs, err := b.core.CoreV1().Services(b.ns).Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "serve"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 9}}},
	}, metav1.CreateOptions{})
	must(t, err)
	w, _ = b.start(func(c *Config) { c.freeEvery = 200 * time.Millisecond })
	w.Submit(own)
	b.rests(w, 0)
	only("derived-serve")
	now, err := b.core.CoreV1().Services(b.ns).Get(t.Context(), "serve", metav1.GetOptions{})
	must(t, err)
	if now.ResourceVersion != theirs.ResourceVersion {
		t.Errorf("touched: %+v", now)
	}
	if n := b.atRest(w); n != 0 {
		t.Errorf("not settled: %d writes", n)
	}
	must(t, b.core.CoreV1().Services(b.ns).Delete(t.Context(), "serve", metav1.DeleteOptions{}))
	only("serve")
	if n := b.atRest(w); n != 0 {
		t.Errorf("not settled with the name that is free: %d writes", n)
	}
}

// A name is free when its Service stays away, not when it is made again or the API server does not answer.
func TestNamesThatBecomeFree(t *testing.T) {
	var log heard
	const there, away, unknown = http.StatusOK, http.StatusNotFound, http.StatusServiceUnavailable
	status := there
	term := answered(t, log.warnings, func(*http.Request, string) int { return status })
	defer term.queue.ShutDown()
	serve := name("serve")
	term.store.put(importAt("serve", "1", "1"))
	term.store.put(importAt("another", "2", "1"))
	term.store.setTrouble(serve, mcs.Trouble{OwnNameTaken: true, AddressRefused: 2})
	var gone map[clustermesh.ServiceName]bool
	looks := []int{there, away, there, away, unknown, away, away}
	for n, s := range looks {
		status = s
		gone = term.look(t.Context(), gone)
		free := n == len(looks)-1
		if trouble := term.store.have(serve).Trouble; trouble != (mcs.Trouble{OwnNameTaken: !free, AddressRefused: 2}) || (term.queue.Len() > 0) != free {
			t.Errorf("look %d: %+v; %d services are to be looked at", n, trouble, term.queue.Len())
		}
	}
}
