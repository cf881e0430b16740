package faults

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"strait.io/strait/daemon/api/client"
	"strait.io/strait/datapath/socklb/inspect"
	"strait.io/strait/internal/testutil"
)

// workers is a Service with two processes at one address, of which each has its own readiness.
func workers(ready8080, ready8081 bool) string {
	out := "apiVersion: v1\nkind: Service\nmetadata: {name: workers}\nspec: {ports: [{name: http, port: 81}]}\n"
	for port, ready := range map[int]bool{8080: ready8080, 8081: ready8081} {
		out += fmt.Sprintf(`---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: workers-%[1]d, labels: {kubernetes.io/service-name: workers}}
addressType: IPv4
ports: [{name: http, port: %[1]d}]
endpoints: [{addresses: [10.9.9.9], nodeName: n1, hostname: w-%[1]d, conditions: {ready: %[2]t}}]
`, port, ready)
	}
	return out + "---\napiVersion: multicluster.x-k8s.io/v1beta1\nkind: ServiceExport\nmetadata: {name: workers}\n"
}

// Of two processes at one address, the one that is not ready gets no connection, whichever it is.
func TestListenersOfOneAddress(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, "manifests/workers.yaml", workers(true, false))
	life := m.start(t)
	for _, c := range []struct {
		ready8080, ready8081 bool
		want                 []uint16
	}{
		{true, false, []uint16{8080}}, {false, true, []uint16{8081}}, {true, true, []uint16{8080, 8081}},
	} {
		m.write(t, "manifests/workers.yaml", workers(c.ready8080, c.ready8081))
		testutil.Eventually(t, patience, func() error {
			kernel, err := m.portsOfWorkers()
			if err != nil {
				return err
			}
			explained, err := life.readyPortsOfWorkers()
			if err == nil && (!slices.Equal(kernel, c.want) || !slices.Equal(explained, c.want)) {
				err = fmt.Errorf("the kernel leads to %v, explain has %v as ready, want %v", kernel, explained, c.want)
			}
			return err
		})
	}
}

func (m *machine) portsOfWorkers() (out []uint16, err error) {
	fs, err := inspect.Read(m.pins())
	for _, f := range fs {
		for _, b := range f.Backends {
			if f.Addr.Port == 81 {
				out = append(out, b.Port)
			}
		}
	}
	slices.Sort(out)
	return out, err
}

// readyPortsOfWorkers returns the ports of the endpoints that are ready. There must be two endpoints.
func (p *process) readyPortsOfWorkers() (out []uint16, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	list, err := client.OnSocket(p.m.path("run/strait.sock")).Services(ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range list.Items {
		if s.Name != "default/workers" {
			continue
		}
		for _, f := range s.Frontends {
			if len(f.Endpoints) != 2 {
				return nil, fmt.Errorf("endpoints %+v, want two", f.Endpoints)
			}
			for _, e := range f.Endpoints {
				if e.Ready {
					out = append(out, e.Addr.Port())
				}
			}
		}
	}
	slices.Sort(out)
	return out, nil
}
