package support

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/netip"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"strait.io/strait/daemon/api"
	"strait.io/strait/daemon/api/client"
	"strait.io/strait/internal/l4"
)

var at = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// daemons are the daemons of a cluster of two nodes, of which one does not answer. alone means that
// only one daemon can be asked.
type daemons struct{ alone bool }

func (d daemons) Get(_ context.Context, path string) (io.ReadCloser, error) {
	u, err := url.Parse(path)
	if err != nil {
		return nil, err
	}
	name := strings.TrimPrefix(u.Path, "/v1/")
	from := api.Viewpoint{Cluster: "c1", Node: "n1", Time: at}
	var answer any
	switch name {
	case "status":
		answer = api.NewStatusAnswer(api.Status{Cluster: "c1", Node: "n1", Version: "v1", Time: at})
	case "services":
		answer = api.NewServiceList(from, []api.Service{{Name: "shop/cart"}})
	case "nodes":
		answer = api.NewNodeList(from, []api.Node{{Cluster: "c1", Name: "n1"}})
	case "members":
		answer = api.NewMemberList(from, nil)
	case "tunnels":
		answer = api.NewTunnelList(from, []api.NodeTunnels{{Node: "c1/n1"}, {Node: "c2/n1"}})
	case "flows":
		answer = api.NewFlowList(from, []api.Flow{{Service: "shop/cart", Frontend: l4.New(netip.MustParseAddr("241.0.0.1"), 80, l4.TCP), FlowCounts: api.FlowCounts{Open: 3}}}, "", "")
	case "policies":
		answer = api.NewPolicyList(from, nil)
	default:
		return nil, &api.Failure{Reason: api.NotFound, Message: "this straitd has no " + path}
	}
	text, _ := json.Marshal(answer)
	if u.Query().Get("node") == api.EveryNode {
		if d.alone {
			return nil, &api.Failure{Reason: api.NoAnswer, Message: "one daemon can be asked"}
		}
		e := api.NewError("node n2: straitd does not answer in time", "ask again")
		text, _ = json.Marshal(api.NewNodeAnswerList(from, []api.NodeAnswer{{Node: "n1", Status: 200, Answer: text}, {Node: "n2", Status: 502, Error: &e}}))
	}
	return io.NopCloser(bytes.NewReader(text)), nil
}

// collected is a bundle of a cluster that was written and read.
func collected(t *testing.T, d daemons) *Bundle {
	t.Helper()
	b := New(at, "v1")
	if err := b.Collect(t.Context(), client.Over(d, "c1"), "prod"); err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := b.Write(&file); err != nil {
		t.Fatal(err)
	}
	read, err := Read(&file)
	if err != nil {
		t.Fatal(err)
	}
	if !read.Time.Equal(at) {
		t.Errorf("it is of %s", read.Time)
	}
	return read
}

// TestAnswers: a bundle answers as the daemons did, and what was not answered has its reason.
func TestAnswers(t *testing.T) {
	for _, alone := range []bool{false, true} {
		b := collected(t, daemons{alone})
		for _, name := range []string{"c1", "prod"} {
			c, err := b.Of(name)
			if err != nil {
				t.Fatal(err)
			}
			if s, err := c.Status(t.Context()); err != nil || s.Version != "v1" || !s.Time.Equal(at) {
				t.Errorf("status: %+v, %v", s, err)
			}
			for _, node := range []string{"n1", "c1/n1"} {
				if l, err := c.At(node).Services(t.Context()); err != nil || len(l.Items) != 1 || l.Items[0].Name != "shop/cart" {
					t.Errorf("services of %s: %+v, %v", node, l, err)
				}
			}
			if e, err := c.Explain(t.Context(), "shop/cart", ""); err != nil || e.Service.Name != "shop/cart" {
				t.Errorf("explain: %+v, %v", e, err)
			}
			if l, err := c.Flows(t.Context(), ""); err != nil || len(l.Items) != 1 || l.Items[0].Open != 3 {
				t.Errorf("flows: %+v, %v", l, err)
			}
			if _, err := c.Backends(t.Context(), ""); err != nil {
				t.Errorf("backends: %v", err)
			}
			if l, err := c.Tunnels(t.Context(), "c2/n1"); err != nil || len(l.Items) != 1 || l.Items[0].Node != "c2/n1" {
				t.Errorf("tunnels: %+v, %v", l, err)
			}
			every, err := c.Every(t.Context(), "status", "")
			if err != nil || len(every.Items) != map[bool]int{false: 2, true: 1}[alone] || every.Items[0].Error != nil {
				t.Errorf("every status: %+v, %v", every, err)
			}
			for what, ask := range map[string]func() error{
				"Members of a node that was not asked": func() error { _, err := c.At("n7").Members(t.Context()); return err },
				"Peers, which no daemon answered":      func() error { _, err := c.Peers(t.Context()); return err },
				"a service that is not there":          func() error { _, err := c.Explain(t.Context(), "shop/crat", ""); return err },
				"another node's choice":                func() error { _, err := c.Explain(t.Context(), "shop/cart", "n2"); return err },
				"what if":                              func() error { _, err := c.WhatIf(t.Context(), "drain c2", "", ""); return err },
			} {
				var f *api.Failure
				if err := ask(); !errors.As(err, &f) || f.Message == "" || f.Try == "" {
					t.Errorf("%s: %v", what, err)
				}
			}
		}
	}
	b := collected(t, daemons{})
	if _, err := b.Of("c9"); err == nil {
		t.Error("the bundle has a cluster c9")
	}
	if !strings.Contains(b.Clusters[0].Missing["n2/status"], "does not answer in time") {
		t.Errorf("missing: %v", b.Clusters[0].Missing)
	}
}

// TestSameTwice: a bundle does not change when it is written again.
func TestSameTwice(t *testing.T) {
	b := collected(t, daemons{})
	var one, two bytes.Buffer
	if err := errors.Join(b.Write(&one), b.Write(&two)); err != nil || !bytes.Equal(one.Bytes(), two.Bytes()) {
		t.Errorf("it differs: %v", err)
	}
}

// FuzzRead: whatever the file, Read ends, and what it takes can be written and read again.
func FuzzRead(f *testing.F) {
	b := New(at, "v1")
	if err := b.Collect(context.Background(), client.Over(daemons{}, "c1"), ""); err != nil {
		f.Fatal(err)
	}
	var file bytes.Buffer
	if err := b.Write(&file); err != nil {
		f.Fatal(err)
	}
	f.Add(file.Bytes())
	f.Add(file.Bytes()[:file.Len()/2])
	f.Add([]byte("not a bundle"))
	f.Fuzz(func(t *testing.T, data []byte) {
		b, err := Read(bytes.NewReader(data))
		if err != nil {
			return
		}
		var again bytes.Buffer
		if err := b.Write(&again); err != nil {
			t.Fatal(err)
		}
		if c, err := Read(&again); err != nil || !reflect.DeepEqual(c.answers, b.answers) {
			t.Errorf("read again: %v", err)
		}
	})
}
