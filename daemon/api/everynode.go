package api

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"
)

// EveryNode, as the value of a query's parameter node, asks the daemons of all nodes of the cluster.
const EveryNode = "*"

// KindNodeAnswers is the kind of the answer to such a query.
const KindNodeAnswers = "NodeAnswerList"

// NodeAnswerList is the answer of any query with ?node=*: one element for each node of the cluster, by name.
type NodeAnswerList struct {
	Meta
	// SeenFrom is the node that asked the others.
	SeenFrom Viewpoint    `json:"seenFrom"`
	Items    []NodeAnswer `json:"items"`
}

// NodeAnswer is what the daemon of one node answered, or why there is no answer.
type NodeAnswer struct {
	Node string `json:"node"`
	// Status is the HTTP status that the query would have had if it had named only this node.
	Status int `json:"status"`
	// Answer is missing if there is an Error.
	Answer json.RawMessage `json:"answer,omitempty"`
	Error  *ErrorAnswer    `json:"error,omitempty"`
	// Age is how old the answer was when the list was complete, in seconds.
	Age float64 `json:"age,omitempty"`
	// Contact and Heard are those of Node, as the node that asked sees them.
	Contact string    `json:"contact"`
	Heard   time.Time `json:"heard,omitzero"`
}

// NewNodeAnswerList makes an answer of what nodes answered, which it sorts.
func NewNodeAnswerList(from Viewpoint, items []NodeAnswer) *NodeAnswerList {
	slices.SortFunc(items, func(a, b NodeAnswer) int { return cmp.Compare(a.Node, b.Node) })
	return &NodeAnswerList{Meta{APIVersion, KindNodeAnswers}, from, orEmpty(items)}
}
