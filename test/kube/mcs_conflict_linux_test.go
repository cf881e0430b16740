package kube

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// A conflict is two Services, or exports, that disagree; c1's is the older.
var conflicts = []struct {
	name     string
	service1 func(*corev1.Service)
	service2 func(*corev1.Service)
	export1  func(*mcsv1beta1.ServiceExport)
	export2  func(*mcsv1beta1.ServiceExport)
	reason   string
	// says is part of the message.
	says string
	// want is what both imports are: c1's word.
	want func(*mcsv1beta1.ServiceImport) error
}{
	{
		name:     "port-union",
		service2: ports(tcp42, corev1.ServicePort{Name: "stcp", Protocol: corev1.ProtocolSCTP, Port: 142}),
		reason:   "PortConflict", says: "1/2 clusters disagree (c2)",
		want: hasPorts("tcp TCP 42 , udp UDP 42 , stcp SCTP 142 "),
	},
	{
		name:     "port-number",
		service2: ports(corev1.ServicePort{Name: "tcp", Port: 43}),
		reason:   "PortConflict", says: `Conflicting ports[tcp:43/TCP]. Using those from oldest service export in "c1". 1/2 clusters disagree (c2)`,
		want: hasPorts("tcp TCP 42 , udp UDP 42 "),
	},
	{
		name:     "port-name",
		service2: ports(corev1.ServicePort{Name: "other", Port: 42}),
		reason:   "PortConflict", says: "ports",
		want: hasPorts("tcp TCP 42 , udp UDP 42 "),
	},
	{
		name:     "type",
		service2: headless,
		reason:   "TypeConflict", says: `Conflicting type. Using "ClusterSetIP" from oldest service export in "c1". 1/2 clusters disagree`,
		want: func(i *mcsv1beta1.ServiceImport) error { return equal("type", i.Spec.Type, mcsv1beta1.ClusterSetIP) },
	},
	{
		name:     "affinity",
		service1: affine(10),
		reason:   "SessionAffinityConflict", says: `Using "ClientIP" from oldest service export in "c1"`,
		want: hasAffinity(10),
	},
	{
		name:     "affinity-config",
		service1: affine(10),
		service2: affine(20),
		reason:   "SessionAffinityConfigConflict", says: "timeoutSeconds: 10",
		want: hasAffinity(10),
	},
	{
		name:    "labels",
		export1: func(e *mcsv1beta1.ServiceExport) { e.Spec.ExportedLabels = map[string]string{"example.com/a": "1"} },
		export2: func(e *mcsv1beta1.ServiceExport) { e.Spec.ExportedLabels = map[string]string{"example.com/b": "2"} },
		reason:  "LabelsConflict", says: `from oldest service export in "c1"`,
		want: func(i *mcsv1beta1.ServiceImport) error {
			return equal("labels", i.Labels["example.com/a"]+i.Labels["example.com/b"], "1")
		},
	},
	{
		name: "annotations",
		export1: func(e *mcsv1beta1.ServiceExport) {
			e.Spec.ExportedAnnotations = map[string]string{"example.com/a": "1"}
		},
		export2: func(e *mcsv1beta1.ServiceExport) {
			e.Spec.ExportedAnnotations = map[string]string{"example.com/a": "2"}
		},
		reason: "AnnotationsConflict", says: `from oldest service export in "c1"`,
		want: func(i *mcsv1beta1.ServiceImport) error {
			return equal("annotation", i.Annotations["example.com/a"], "1")
		},
	},
	{
		name: "internal-traffic-policy",
		service2: func(s *corev1.Service) {
			local := corev1.ServiceInternalTrafficPolicyLocal
			s.Spec.InternalTrafficPolicy = &local
		},
		reason: "InternalTrafficPolicyConflict", says: "internal traffic policy",
		want: func(i *mcsv1beta1.ServiceImport) error {
			if p := i.Spec.InternalTrafficPolicy; p != nil && *p != corev1.ServiceInternalTrafficPolicyCluster {
				return fmt.Errorf("internalTrafficPolicy: %s, want Cluster", *p)
			}
			return nil
		},
	},
	{
		name: "traffic-distribution",
		service1: func(s *corev1.Service) {
			prefer := corev1.ServiceTrafficDistributionPreferClose
			s.Spec.TrafficDistribution = &prefer
		},
		reason: "TrafficDistributionConflict", says: `Using "PreferClose"`,
		want: func(i *mcsv1beta1.ServiceImport) error {
			if i.Spec.TrafficDistribution == nil {
				return fmt.Errorf("trafficDistribution: none, want c1's")
			}
			return equal("trafficDistribution", *i.Spec.TrafficDistribution, "PreferClose")
		},
	},
	{
		name:     "two-at-once",
		service1: affine(10),
		service2: ports(corev1.ServicePort{Name: "tcp", Port: 43}),
		reason:   "SessionAffinityConflict,PortConflict", says: "session affinity",
		want: hasAffinity(10),
	},
}

var tcp42 = corev1.ServicePort{Name: "tcp", Protocol: corev1.ProtocolTCP, Port: 42}

func hasPorts(want string) func(*mcsv1beta1.ServiceImport) error {
	return func(i *mcsv1beta1.ServiceImport) error { return equal("ports", portsOf(i.Spec), want) }
}

func affine(seconds int32) func(*corev1.Service) {
	return func(s *corev1.Service) {
		s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
		s.Spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: &seconds}}
	}
}

func hasAffinity(seconds int32) func(*mcsv1beta1.ServiceImport) error {
	return func(i *mcsv1beta1.ServiceImport) error {
		if c := i.Spec.SessionAffinityConfig; c == nil || c.ClientIP == nil || c.ClientIP.TimeoutSeconds == nil {
			return fmt.Errorf("sessionAffinityConfig: %v, want %d s", c, seconds)
		}
		return equal("affinity", *i.Spec.SessionAffinityConfig.ClientIP.TimeoutSeconds, seconds)
	}
}

// §2.4: the oldest export wins, field by field; the condition is on all exports, and goes when they agree.
func TestConflict(t *testing.T) {
	t.Parallel()
	nothing := func(*corev1.Service) {}
	same := func(*mcsv1beta1.ServiceExport) {}
	for _, tc := range conflicts {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c1, c2 := clusterset(t)
			for _, edit := range []*func(*corev1.Service){&tc.service1, &tc.service2} {
				if *edit == nil {
					*edit = nothing
				}
			}
			for _, edit := range []*func(*mcsv1beta1.ServiceExport){&tc.export1, &tc.export2} {
				if *edit == nil {
					*edit = same
				}
			}
			c1.serve(service(tc.service1))
			c2.serve(service(tc.service2))
			c1.export("hello", tc.export1) // of the same second: the name of the cluster decides
			c2.export("hello", tc.export2)
			for _, m := range []*member{c1, c2} {
				message := m.exportHas("hello", "Conflict", "True", tc.reason)
				if !strings.Contains(message, tc.says) {
					t.Errorf("%s: message %q, want %q in it", m.name, message, tc.says)
				}
				m.imported("hello", from("c1", "c2"), tc.want)
			}
			c2.unexport("hello")
			c1.exportHas("hello", "Conflict", "False", "NoConflicts")
		})
	}
}

// The oldest wins, not the first by name.
func TestOldestExportWins(t *testing.T) {
	t.Parallel()
	c1, c2 := clusterset(t)
	c1.serve(service(affine(10)))
	c2.serve(service(affine(20)))
	c2.export("hello")
	c2.imported("hello", hasAffinity(20))
	time.Sleep(1100 * time.Millisecond) // creation times have seconds
	c1.export("hello")
	for _, m := range []*member{c1, c2} {
		m.exportHas("hello", "Conflict", "True", "SessionAffinityConfigConflict")
		m.imported("hello", from("c1", "c2"), hasAffinity(20))
	}
	// The oldest leaves: the other's word counts, or the import stays as it was (both are allowed), and it is there.
	c2.unexport("hello")
	c1.imported("hello", from("c1"), hasAffinity(10))
}
