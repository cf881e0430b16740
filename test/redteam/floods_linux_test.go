package redteam

import (
	"crypto/rand"
	"fmt"
	"slices"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/replica"
)

// maxDelay is how long changes may take while a relay floods, in the middle, or slowerFlooded times what
// they take without that. On two busy processors it was 0.12 s without, and 0.12 to 0.35 s with each flood;
// while false offers were a reason to wait, 1.2 s.
const (
	maxDelay      = 700 * time.Millisecond
	slowerFlooded = 4
	floodAttempts = 4
)

// Bounds on what the flooded daemon does in turn: what it sends the relay, in bytes a second, and how often
// it says whom it hears. It asks for each thing that is offered. It has memory for what the streams carry.
const (
	maxAnswered  = 512 << 10
	maxAsked     = 8 << 20
	maxReports   = 15
	maxFloodedMB = 64
)

// TestRelayFloods: a hostile relay, which passes nothing on, sends a node whose first home it is, and that
// node's second home, as much as the streams take, of one kind after the other. Others' changes arrive
// nearly as soon as without that, and what the daemons send in turn, and take in memory, is bounded.
func TestRelayFloods(t *testing.T) {
	if !insideAlone(t) {
		return
	}
	c := newCrowd(t)
	quiet := percentile(c.changes(changesEach), 50)
	t.Log("without a flood, changes take", quiet)
	for _, f := range c.floods() {
		limit := max(maxDelay, slowerFlooded*quiet)
		for n := 1; ; n++ {
			delay := c.flooded(f)
			if delay <= limit {
				break
			}
			if n == floodAttempts {
				t.Errorf("%s: changes take %s, %s without the flood", f.kind, delay, quiet)
				break
			}
		}
	}
}

// relayFlood is what a hostile relay sends, again and again.
type relayFlood struct {
	kind   string
	frames [][]byte
	most   float64 // of maxAnswered and maxAsked
}

// changesEach is how many changes are measured for each kind.
const changesEach = 7

// falseOffer is the kind that is asked for.
const falseOffer = "false offers"

// variants is how many messages of a kind there are.
const variants = 256

func (c *crowd) floods() (out []relayFlood) {
	c.Helper()
	var known []replica.Entry
	c.k.heard.Range(func(_, e any) bool { known = append(known, e.(replica.Entry)); return true })
	for _, f := range []struct {
		kind     string
		messages func(n int) []replica.Message
	}{
		{"records that all have", func(n int) []replica.Message {
			return []replica.Message{&replica.Snapshot{Entries: []replica.Entry{known[n%len(known)]}}}
		}},
		{"wrong differences", func(n int) []replica.Message { return []replica.Message{c.wrongOften(known[n%len(known)])} }},
		{"reports of whom it hears", func(n int) []replica.Message { return []replica.Message{c.claims(n)} }},
		{falseOffer, func(n int) []replica.Message { return []replica.Message{inventedOffers(known, n)} }},
		{"questions for everything", func(int) []replica.Message { return []replica.Message{&replica.Want{Origins: c.all}} }},
		{"exchanges without end", func(int) []replica.Message { return endlessExchanges() }},
	} {
		of := relayFlood{kind: f.kind, most: maxAnswered}
		if f.kind == falseOffer {
			of.most = maxAsked
		}
		for n := range variants {
			for _, m := range f.messages(n) {
				b, err := replica.Encode(m)
				c.must(err)
				of.frames = append(of.frames, b)
			}
		}
		out = append(out, of)
	}
	return out
}

// wrongOften says 100 times what differs from a record, with a seal that proves nothing.
func (c *crowd) wrongOften(e replica.Entry) replica.Message {
	item := c.item(e, e.Sealed(e.Seal()[1:]))
	item.Version.Count++
	return &replica.Delta{Items: slices.Repeat([]replica.DeltaItem{item}, 100)}
}

// claims are that other clusters are heard each time, and nodes of its own silent.
func (c *crowd) claims(n int) *replica.Links {
	m := &replica.Links{}
	for i := range 100 {
		m.Heard = append(m.Heard, clustermesh.ClusterName(fmt.Sprintf("c%d", n*100+i)))
		m.SilentVia = append(m.SilentVia, clustermesh.NodeName(fmt.Sprintf("x%d", n*100+i)))
	}
	for _, o := range c.all[n%len(c.all):] {
		m.Silent = append(m.Silent, o.Node)
	}
	return m
}

// inventedOffers are of versions that do not exist, and of nodes that do not.
func inventedOffers(known []replica.Entry, n int) replica.Message {
	m := &replica.Announce{}
	for _, e := range known {
		v := e.Version()
		v.Count += 1000 + uint64(n)
		m.Offers = append(m.Offers, replica.Offer{Origin: e.Record.Origin, Version: v})
	}
	for i := range 100 {
		o := origin("west", fmt.Sprintf("x%d", n*100+i))
		m.Offers = append(m.Offers, replica.Offer{Origin: o, Version: replica.Version{Epoch: 1}})
		m.Hints = append(m.Hints, replica.Hint{Of: uint64(n*100 + i), Sum: uint32(i)})
	}
	return m
}

// endlessExchanges are the messages of exchanges of one that never holds the same.
func endlessExchanges() []replica.Message {
	var sum [16]byte
	_, _ = rand.Read(sum[:])
	lacks, buckets := &replica.Listing{}, &replica.Buckets{}
	for _, of := range []clustermesh.ClusterName{"west", "east"} {
		lacks.Of = append(lacks.Of, replica.ClusterListing{Cluster: of, Buckets: 1<<16 - 1})
		buckets.Of = append(buckets.Of, replica.ClusterBuckets{Cluster: of, Sums: make([]byte, 96)})
	}
	return []replica.Message{
		&replica.Hello{Speaks: replica.SpeaksHints, Sum: sum}, &replica.Root{Sum: sum}, &replica.Digest{}, &replica.Sums{}, buckets, lacks,
		&replica.Vector{Clusters: []replica.ClusterVector{{Cluster: "west"}}},
	}
}

// flooded returns how long changes take while n1 and its second home are flooded, in the middle.
func (c *crowd) flooded(f relayFlood) time.Duration {
	c.Helper()
	n1, sent := c.all[0], 0
	end := during(time.Millisecond, func(int) {
		for range 20 {
			c.k.Send(n1, f.frames[sent%len(f.frames)])
			c.k.Send(crowdNode(secondHome), f.frames[sent%len(f.frames)])
			sent++
		}
	})
	time.Sleep(200 * time.Millisecond)
	bytes, reports := c.got(n1)
	cpu, rss, began := c.west.cpu(), c.west.rss(), time.Now()
	delays := c.changes(changesEach)
	took := time.Since(began)
	cpu, used := c.west.cpu()-cpu, c.west.rss()
	end()
	bytesNow, reportsNow := c.got(n1)
	rate := float64(bytesNow-bytes) / took.Seconds()
	said := float64(reportsNow-reports) / took.Seconds()
	delay := percentile(delays, 50)
	c.Logf("%s: changes take %s, at most %s; %d messages; n1 uses %.0f %% of a processor, %d MiB, answers %.0f KB and %.1f reports a second", f.kind,
		delay.Round(time.Millisecond), slices.Max(delays).Round(time.Millisecond), sent, 100*cpu.Seconds()/took.Seconds(), used>>20, rate/1e3, said)
	if rate > f.most || said > maxReports || sent < 1000 || used > rss+maxFloodedMB<<20 {
		c.Errorf("%s: that is too much, or no flood", f.kind)
	}
	c.drained()
	return delay
}
