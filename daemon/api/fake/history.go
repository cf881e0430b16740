package fake

import (
	"time"

	"strait.io/strait/daemon/api"
	"strait.io/strait/internal/problem"
)

// History is that of the view, which begins with its first item; nil without a view.
func (s *Source) History(q api.HistoryQuery) (*api.History, error) {
	v := s.view.Load()
	if v == nil {
		return nil, nil
	}
	h := api.NewHistory(v.Status.Viewpoint(), time.Time{}, 4096, v.History)
	if len(v.History) > 0 {
		h.Begins = v.History[0].Time
	}
	return h.Keep(q), nil
}

// ServicesAt are those of the view, if its history has begun by then.
func (s *Source) ServicesAt(at time.Time, node string) (*api.ServiceList, error) {
	v := s.view.Load()
	if v == nil || len(v.History) == 0 || at.Before(v.History[0].Time) {
		return nil, &api.Unnoted{Refusal: problem.Refusal{Message: "nothing is noted of " + at.UTC().Format(time.RFC3339), Try: "ask for a later moment"}}
	}
	l, err := s.ServicesFrom(node)
	if err == nil && l != nil {
		l.SeenFrom.Node, l.SeenFrom.Computed = v.Status.Node, node != ""
		l.SeenFrom.Past = &api.Past{At: v.History[0].Time, Since: v.History[0].Time}
	}
	return l, err
}

// Logs are those of the view; nil without a view.
func (s *Source) Logs() *api.LogList {
	v := s.view.Load()
	if v == nil {
		return nil
	}
	return api.NewLogList(v.Status.Viewpoint(), v.Logs, 0)
}
