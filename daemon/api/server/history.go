package server

import (
	"net/http"
	"time"

	"strait.io/strait/daemon/api"
	"strait.io/strait/internal/problem"
)

// history answers what changed and why.
func (s *Server) history(w http.ResponseWriter, r *http.Request) {
	q := api.HistoryQuery{Name: r.URL.Query().Get("name")}
	var err error
	if q.Since, err = moment(r, "since"); err == nil {
		q.Until, err = moment(r, "until")
	}
	if err != nil {
		writeRefusal(w, err)
		return
	}
	l, err := s.src.History(q)
	if err != nil {
		writeRefusal(w, err)
		return
	}
	whole(func() *api.History { return l })(w, r)
}

// moment reads a time of a query; zero if there is none.
func moment(r *http.Request, name string) (t time.Time, err error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return t, nil
	}
	if t, err = time.Parse(time.RFC3339Nano, text); err != nil {
		return t, problem.Refuse("write it as in 2026-05-01T14:02:00Z", "?%s=%s is no time", name, text)
	}
	return t, nil
}
