package support

import (
	"encoding/json"
	"io"
	"net/url"
	"time"

	"strait.io/strait/daemon/api"
)

// history returns what is asked for of the items of a node.
func (f from) history(node string, q url.Values) (io.ReadCloser, error) {
	text, err := f.answer(node, "history")
	if err != nil {
		return nil, err
	}
	var h api.History
	if err := json.Unmarshal(text, &h); err != nil {
		return nil, notThisVersion("history", err)
	}
	asked := api.HistoryQuery{Name: q.Get("name")}
	for name, at := range map[string]*time.Time{"since": &asked.Since, "until": &asked.Until} {
		if t := q.Get(name); t != "" {
			if *at, err = time.Parse(time.RFC3339Nano, t); err != nil {
				return nil, &api.Failure{Reason: api.BadRequest, Message: "?" + name + "=" + t + " is no time", Try: "write it as in 2026-05-01T14:02:00Z"}
			}
		}
	}
	return encoded(h.Keep(asked))
}
