package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"strait.io/strait/daemon/api"
	"strait.io/strait/internal/problem"
)

// localHandler answers on the unix socket, about this node and others of its cluster.
func (s *Server) localHandler() http.Handler { return s.withNodes(s.answers()) }

// answers answers about this node. It is read-only: changes to strait go through Kubernetes objects or
// files, which have permissions and an audit log.
func (s *Server) answers() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/status", func(w http.ResponseWriter, _ *http.Request) {
		if status := s.Status(); status == nil {
			writeStarting(w)
		} else {
			writeJSON(w, http.StatusOK, api.NewStatusAnswer(*status))
		}
	})
	mux.HandleFunc("GET /v1/nodes", whole(s.src.Nodes))
	mux.HandleFunc("GET /v1/tunnels", fallible(func(r *http.Request) (*api.TunnelList, error) {
		return s.src.Tunnels(r.URL.Query().Get("of"))
	}))
	mux.HandleFunc("GET /v1/flows", fallible(func(r *http.Request) (*api.FlowList, error) {
		return s.src.Flows(r.Context(), r.URL.Query().Get("service"))
	}))
	mux.HandleFunc("GET /v1/traffic", fallible(func(r *http.Request) (*api.TrafficList, error) {
		return s.src.TrafficList(r.Context())
	}))
	mux.HandleFunc("GET /v1/members", whole(s.src.MemberList))
	mux.HandleFunc("GET /v1/policies", whole(s.src.PolicyList))
	mux.HandleFunc("GET /v1/peers", whole(s.src.Peers))
	mux.HandleFunc("GET /v1/services", s.fromServices(func(l *api.ServiceList, _ string) (any, bool) { return l, true }))
	mux.HandleFunc("GET /v1/backends", s.fromServices(func(l *api.ServiceList, service string) (any, bool) {
		return api.NewBackendList(l, service)
	}))
	mux.HandleFunc("GET /v1/explain", s.requireService(s.fromServices(func(l *api.ServiceList, service string) (any, bool) {
		return api.NewExplanation(l, service)
	})))
	mux.HandleFunc("GET /v1/history", s.history)
	mux.HandleFunc("GET /v1/logs", whole(s.src.Logs))
	mux.Handle("GET /metrics", s.cfg.Scrape) // also where the port for it is taken
	mux.HandleFunc("GET /v1/whatif", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if answer, err := s.src.WhatIf(q.Get("change"), q.Get("service"), q.Get("from")); err != nil {
			writeRefusal(w, err)
		} else {
			writeJSON(w, http.StatusOK, answer)
		}
	})
	mux.HandleFunc("GET /v1/ping", func(w http.ResponseWriter, r *http.Request) {
		switch answer, err := s.src.Ping(r.Context(), r.URL.Query().Get("to")); {
		case errors.Is(err, ErrBusy):
			writeRefusalAs(w, http.StatusTooManyRequests, err)
		case err != nil:
			writeRefusal(w, err)
		default:
			writeJSON(w, http.StatusOK, answer)
		}
	})
	mux.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) {
		writeError(w, http.StatusNotFound, fmt.Sprintf("this straitd has no %s", r.URL.Path),
			"use one of /v1/status, /v1/services, /v1/backends, /v1/nodes, /v1/tunnels, /v1/members, /v1/peers, /v1/policies, /v1/flows, /v1/traffic, /v1/history, /v1/logs, /v1/explain?service=NAMESPACE/NAME, /v1/whatif?change=…, /v1/ping?to=…, or /metrics")
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Allow", "GET, HEAD")
		writeError(w, http.StatusMethodNotAllowed, "this API is read-only: method "+r.Method+" is not supported", "use GET")
	})
	return mux
}

// whole answers with a list, or that there is none yet.
func whole[T any](list func() *T) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if l := list(); l == nil {
			writeStarting(w)
		} else {
			writeJSON(w, http.StatusOK, l)
		}
	}
}

// fallible answers with a list, that there is none yet, or why it is refused.
func fallible[T any](list func(*http.Request) (*T, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if l, err := list(r); err != nil {
			writeRefusal(w, err)
		} else {
			whole(func() *T { return l })(w, r)
		}
	}
}

// fromServices writes what derive makes of the services and of the service in the query. False
// means that there is no such service.
func (s *Server) fromServices(derive func(l *api.ServiceList, service string) (any, bool)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		l, err := s.services(r)
		if err != nil {
			writeRefusal(w, err)
			return
		}
		if l == nil {
			writeStarting(w)
			return
		}
		service := r.URL.Query().Get("service")
		body, found := derive(l, service)
		if !found {
			if policy, sources := s.src.MirrorOf(service); policy != "" {
				writeMirror(w, service, policy, sources)
				return
			}
			writeNoService(w, l, service)
			return
		}
		writeJSON(w, http.StatusOK, body)
	}
}

// services lists the services that a query asks for: now or at a moment, of this node or another.
func (s *Server) services(r *http.Request) (*api.ServiceList, error) {
	node := r.URL.Query().Get("from")
	if at, err := moment(r, "at"); err != nil || !at.IsZero() {
		if err != nil {
			return nil, err
		}
		return s.src.ServicesAt(at, node)
	}
	l := s.src.Services()
	if node != "" && l != nil {
		return s.src.ServicesFrom(node)
	}
	return l, nil
}

// writeRefusal writes why a question cannot be answered, and what to do if the error has that.
func writeRefusal(w http.ResponseWriter, err error) {
	status := http.StatusBadRequest
	if errors.As(err, new(*api.Unnoted)) {
		status = http.StatusGone
	}
	writeRefusalAs(w, status, err)
}

func writeRefusalAs(w http.ResponseWriter, status int, err error) {
	var r *problem.Refusal
	if !errors.As(err, &r) {
		r = &problem.Refusal{Message: err.Error()}
	}
	writeError(w, status, r.Message, r.Try)
}

func writeStarting(w http.ResponseWriter) {
	writeError(w, http.StatusServiceUnavailable, "straitd has started but has no plan yet", "wait for it: strait status --wait")
}

func (s *Server) requireService(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		namespace, name, _ := strings.Cut(r.URL.Query().Get("service"), "/")
		if namespace == "" || name == "" || strings.Contains(name, "/") {
			writeError(w, http.StatusBadRequest, "the query names no service",
				"add ?service=NAMESPACE/NAME, such as ?service=default/serve")
			return
		}
		next(w, r)
	}
}

// writeMirror writes why there is no answer about a mirror: its ClusterIP is no frontend of strait's.
func writeMirror(w http.ResponseWriter, service, policy string, sources []string) {
	namespace, name, _ := strings.Cut(service, "/")
	writeError(w, http.StatusNotFound,
		fmt.Sprintf("Service %s is a mirror of %s by policy %s: what serves ClusterIPs, such as kube-proxy, chooses its pods", service, strings.Join(sources, ", "), policy),
		fmt.Sprintf("strait policy %s, and kubectl -n %s get endpointslices -l kubernetes.io/service-name=%s", policy, namespace, name))
}

func writeNoService(w http.ResponseWriter, l *api.ServiceList, service string) {
	try := "list all services: strait services"
	if similar := api.SimilarServices(l.Items, service); len(similar) > 0 {
		try = "did you mean " + strings.Join(similar, ", ") + "? List all services: strait services"
	}
	writeError(w, http.StatusNotFound,
		fmt.Sprintf("no cluster exports a service %s, as seen from %s/%s", service, l.SeenFrom.Cluster, l.SeenFrom.Node), try)
}

func writeError(w http.ResponseWriter, status int, message, try string) {
	writeJSON(w, status, api.NewError(message, try))
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	text, err := json.MarshalIndent(body, "", "  ")
	if err != nil { // JSON cannot hold the answer, such as a share that is NaN
		status = http.StatusInternalServerError
		text, _ = json.Marshal(api.NewError("encode the answer: "+err.Error(), "please report this as a bug of straitd"))
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n')) // a client that went away is not our error
}

// MetricsHandler answers on TCP, which every process of the node can reach. It shows no topology
// beyond what metrics show. Probes ask the source for its readiness and nothing else.
func (s *Server) MetricsHandler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", s.cfg.Scrape)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		r := s.src.Ready()
		if !r.Ready {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		fmt.Fprintln(w, r)
	})
	return mux
}
