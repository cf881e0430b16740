package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// localHandler answers on the unix socket. It only reads: whatever changes strait goes through
// Kubernetes objects or files, where there are permissions and an audit log.
func (s *Server) localHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/status", s.answer(func(v *View, _ string) (any, bool) {
		return NewStatusAnswer(v.Status), true
	}))
	mux.HandleFunc("GET /v1/services", s.answer(func(v *View, _ string) (any, bool) {
		return NewServiceList(v), true
	}))
	mux.HandleFunc("GET /v1/nodes", s.answer(func(v *View, _ string) (any, bool) {
		return NewNodeList(v), true
	}))
	mux.HandleFunc("GET /v1/backends", s.answer(func(v *View, service string) (any, bool) {
		return NewBackendList(v, service)
	}))
	mux.HandleFunc("GET /v1/explain", s.requireService(s.answer(func(v *View, service string) (any, bool) {
		return NewExplanation(v, service)
	})))
	mux.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) {
		writeError(w, http.StatusNotFound, fmt.Sprintf("this straitd has no %s", r.URL.Path),
			"use one of /v1/status, /v1/services, /v1/backends, /v1/nodes, /v1/explain?service=NAMESPACE/NAME")
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Allow", "GET, HEAD")
		writeError(w, http.StatusMethodNotAllowed, "this API only reads: method "+r.Method+" is not served", "use GET")
	})
	return mux
}

// answer writes what derive makes of the present view and the query's service; false is "no such service".
func (s *Server) answer(derive func(v *View, service string) (any, bool)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v := s.View()
		if v == nil {
			writeError(w, http.StatusServiceUnavailable, "straitd has started and has no plan yet",
				"wait for it: strait status --wait")
			return
		}
		service := r.URL.Query().Get("service")
		body, found := derive(v, service)
		if !found {
			writeNoService(w, v, service)
			return
		}
		writeJSON(w, http.StatusOK, body)
	}
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

func writeNoService(w http.ResponseWriter, v *View, service string) {
	try := "see what is imported: strait services"
	if similar := SimilarServices(v, service); len(similar) > 0 {
		try = "did you mean " + strings.Join(similar, ", ") + "? All of them: strait services"
	}
	writeError(w, http.StatusNotFound,
		fmt.Sprintf("no cluster exports a service %s, as seen from %s/%s", service, v.Status.Cluster, v.Status.Node), try)
}

func writeError(w http.ResponseWriter, status int, message, try string) {
	writeJSON(w, status, ErrorAnswer{Meta{APIVersion, KindError}, message, try})
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	text, err := json.MarshalIndent(body, "", "  ")
	if err != nil { // an answer that JSON cannot hold, such as a share that is not a number
		status = http.StatusInternalServerError
		text, _ = json.Marshal(ErrorAnswer{Meta{APIVersion, KindError}, "encode the answer: " + err.Error(),
			"please report this as a bug of straitd"})
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n')) // a client that went away is no error of ours
}

// metricsHandler answers on TCP, where anybody on the node may ask: no topology beyond what metrics say.
func (s *Server) metricsHandler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.metrics.registry, promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError,
	}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		ready, why := s.View().ready()
		if !ready {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		fmt.Fprintln(w, why)
	})
	return mux
}

// ready says whether the node serves its plan, and if not, what it waits for.
func (v *View) ready() (ok bool, why string) {
	switch {
	case v == nil:
		return false, "not ready: no plan yet"
	case !v.Status.Ready && len(v.Status.Waiting) > 0:
		return false, "not ready: waiting for " + strings.Join(v.Status.Waiting, ", ")
	case !v.Status.Ready:
		return false, "not ready: the first plan is not applied yet"
	}
	return true, "ok"
}
