package api

import (
	"math"
	"slices"
	"strconv"
	"strings"
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

// LogQuery is what is asked of a log. Its zero value asks for everything.
type LogQuery struct {
	Since time.Time
	// Level is the least important level; empty is any.
	Level string
}

// Keep returns the list without what is not asked for.
func (l LogList) Keep(q LogQuery) *LogList {
	least := levelOf(q.Level)
	l.Items = slices.DeleteFunc(slices.Clone(l.Items), func(i LogLine) bool {
		return i.Time.Before(q.Since) || levelOf(i.Level) < least
	})
	return &l
}

// levels are those of log/slog.
var levels = map[string]int{"DEBUG": -4, "INFO": 0, "WARN": 4, "ERROR": 8}

// levelOf returns a level that can be compared; one that is not known is below all others.
func levelOf(text string) int {
	name, more := text, 0
	if i := strings.IndexAny(text, "+-"); i >= 0 {
		name = text[:i]
		more, _ = strconv.Atoi(text[i:])
	}
	level, known := levels[name]
	if !known {
		return math.MinInt
	}
	return level + more
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
