package api

import (
	"slices"
	"time"
)

// KindLogs is the kind of a LogList.
const KindLogs = "LogList"

// LogList is the answer of GET /v1/logs: the last lines of a daemon's log that it has in memory, oldest
// first. Those of an earlier life of the daemon are not among them.
type LogList struct {
	Meta
	SeenFrom Viewpoint `json:"seenFrom"`
	// Dropped counts the lines before these of the same life.
	Dropped uint64    `json:"dropped,omitempty"`
	Items   []LogLine `json:"items"`
}

// LogLine is one line.
type LogLine struct {
	Time time.Time `json:"time"`
	// Level is DEBUG, INFO, WARN or ERROR, or a number more or less: DEBUG+1.
	Level   string `json:"level"`
	Message string `json:"message"`
	// Attrs are what the message is about, as KEY=VALUE with blanks between.
	Attrs string `json:"attrs,omitempty"`
}

// NewLogList makes an answer of lines.
func NewLogList(from Viewpoint, lines []LogLine, dropped uint64) *LogList {
	return &LogList{Meta: Meta{APIVersion, KindLogs}, SeenFrom: from, Dropped: dropped, Items: orEmpty(lines)}
}

// NodeLine is a line of one node's log.
type NodeLine struct {
	// Node is CLUSTER/NODE.
	Node string `json:"node"`
	LogLine
}

// LinesOf merges the logs of several nodes by time. Lines of one node stay in their order.
func LinesOf(lists []*LogList) (out []NodeLine) {
	for _, l := range lists {
		for _, i := range l.Items {
			out = append(out, NodeLine{l.SeenFrom.Cluster + "/" + l.SeenFrom.Node, i})
		}
	}
	slices.SortStableFunc(out, func(a, b NodeLine) int { return a.Time.Compare(b.Time) })
	return out
}
