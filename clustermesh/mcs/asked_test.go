package mcs

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"strait.io/strait/internal/problem"
)

// The CRD of ServiceImports lets users write what no Service can have. Each of it is left out of
// the derived Service and named, and the rest works.
func TestUserImport_WhatNoServiceCanHave(t *testing.T) {
	type ports = []mcsv1beta1.ServicePort
	good := ports{{Name: "http", Port: 80, Protocol: "TCP"}}
	for name, c := range map[string]struct {
		ports  ports
		change func(*mcsv1beta1.ServiceImportSpec)
		want   string // the derived Service's ports; default http:80/TCP
		fields []string
	}{
		"nothing wrong":           {},
		"a port without protocol": {ports: ports{{Name: "http", Port: 80}}},
		"a lower-case protocol":   {ports: ports{{Name: "http", Port: 80, Protocol: "tcp"}}},
		"an unknown protocol":     {ports: ports{good[0], {Name: "h3", Port: 81, Protocol: "QUIC"}}, fields: []string{"spec.ports.protocol"}},
		"no number":               {ports: ports{{Name: "zero"}, good[0]}, fields: []string{"spec.ports.port"}},
		"a number too high":       {ports: ports{good[0], {Name: "high", Port: 65536}}, fields: []string{"spec.ports.port"}},
		"a name that is no label": {ports: ports{{Name: "HTTP_1", Port: 80}, {Name: "b", Port: 81}}, want: "port-80-tcp:80/TCP b:81/TCP", fields: []string{"spec.ports.name"}},
		"a name twice":            {ports: ports{good[0], {Name: "http", Port: 81}}, fields: []string{"spec.ports"}},
		"a number twice":          {ports: ports{good[0], {Name: "b", Port: 80}, {Name: "c", Port: 80, Protocol: "UDP"}}, want: "http:80/TCP c:80/UDP", fields: []string{"spec.ports"}},
		"an application protocol": {ports: ports{{Name: "http", Port: 80, AppProtocol: new("a b")}}, fields: []string{"spec.ports.appProtocol"}},
		"a session affinity":      {change: func(s *mcsv1beta1.ServiceImportSpec) { s.SessionAffinity = "Cookie" }, fields: []string{"spec.sessionAffinity"}},
		"its time-out": {change: func(s *mcsv1beta1.ServiceImportSpec) { s.SessionAffinity, s.SessionAffinityConfig = affinity(86401) },
			fields: []string{"spec.sessionAffinityConfig.clientIP.timeoutSeconds"}},
		"a traffic policy": {change: func(s *mcsv1beta1.ServiceImportSpec) {
			s.InternalTrafficPolicy = new(corev1.ServiceInternalTrafficPolicy("Near"))
		}, fields: []string{"spec.internalTrafficPolicy"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			i := &mcsv1beta1.ServiceImport{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "serve", UID: "u", Generation: 1},
				Spec:       mcsv1beta1.ServiceImportSpec{Type: mcsv1beta1.ClusterSetIP, Ports: c.ports},
			}
			if c.ports == nil {
				i.Spec.Ports = good
			}
			if c.change != nil {
				c.change(&i.Spec)
			}
			w.imports["default/serve"] = i
			v := viewOf(exportOf("c2", 1)).change(pod("c2", "10.2.0.1", 8080))
			w.settle(v, serve)
			_, problems := Diff(v, serve, w.have(serve), start)
			var fields []string
			for _, p := range problems {
				if fields = append(fields, p.Field); p.Code != problem.ImportLowered || p.Object != "ServiceImport default/serve" {
					t.Errorf("problem %v", p)
				}
			}
			s := w.services["default/derived-serve"]
			if s == nil {
				t.Fatal("no derived Service")
			}
			var got []string
			for _, p := range s.Spec.Ports {
				if got = append(got, fmt.Sprintf("%s:%d/%s", p.Name, p.Port, p.Protocol)); p.AppProtocol != nil {
					t.Errorf("appProtocol %q", *p.AppProtocol)
				}
			}
			if c.want == "" {
				c.want = "http:80/TCP"
			}
			if strings.Join(got, " ") != c.want || !slices.Equal(fields, c.fields) {
				t.Errorf("ports %v, problems with %v; want %s, %v", got, fields, c.want, c.fields)
			}
			if a := s.Spec.SessionAffinity; a != corev1.ServiceAffinityNone && a != corev1.ServiceAffinityClientIP ||
				s.Spec.SessionAffinityConfig != nil || *s.Spec.InternalTrafficPolicy != corev1.ServiceInternalTrafficPolicyCluster {
				t.Errorf("spec %+v", s.Spec)
			}
			if got := condition(w.imports["default/serve"].Status.Conditions, "Ready"); got.Status != metav1.ConditionTrue {
				t.Errorf("condition %+v", got)
			}
		})
	}
}

// A user's import without a port that a Service can have gets no address, and a condition has the reason.
func TestUserImport_WithoutPorts(t *testing.T) {
	for _, ports := range [][]mcsv1beta1.ServicePort{{}, {{Name: "zero"}}} {
		w := newWorld(t)
		w.imports["default/serve"] = &mcsv1beta1.ServiceImport{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "serve", UID: "u", Generation: 1},
			Spec:       mcsv1beta1.ServiceImportSpec{Type: mcsv1beta1.ClusterSetIP, Ports: ports},
		}
		w.settle(viewOf(exportOf("c2", 1)), serve)
		c := condition(w.imports["default/serve"].Status.Conditions, "Ready")
		if len(w.services) != 0 || c.Status != metav1.ConditionFalse || c.Message != "This import lists no port that a Service can have." {
			t.Errorf("ports %v: %d Services, condition %+v", ports, len(w.services), c)
		}
	}
}
