package authority

import (
	"slices"
	"strings"
	"testing"
	"time"

	"strait.io/strait/clustermesh"
)

var channel, relayed = []byte("the keying material of one channel"), []byte("that of another")

// wanted is what node east/n1 asks for.
func wanted() Statement {
	w := statement()
	w.Serial, w.NotBefore, w.NotAfter = 0, 0, 0
	return w
}

// TestRequest: what is asked arrives, but only from the owner of the key, and on its channel.
func TestRequest(t *testing.T) {
	b, err := Request{Want: wanted(), Token: "token"}.Sign(node, channel)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := OpenRequest(b, channel); err != nil || r.Token != "token" || !r.Want.SaysAs(wanted()) {
		t.Errorf("got %+v, %v", r, err)
	}
	if _, err := OpenRequest(b, relayed); err == nil {
		t.Error("a request counts on a channel that it was not made for")
	}
	if b, err = (Request{Want: wanted()}).Sign(west, channel); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenRequest(b, channel); err == nil {
		t.Error("somebody asks for a statement about a key that he does not have")
	}
	if _, err := OpenRequest(make([]byte, MaxRequest+1), channel); err == nil || !strings.Contains(err.Error(), "limit") {
		t.Errorf("a request that is too long: %v", err)
	}
}

func TestIntroduce(t *testing.T) {
	proof := east.Introduce(channel)
	if !pins()["east"].Introduced(channel, proof) {
		t.Error("the root is not believed to be the root")
	}
	if pins()["east"].Introduced(relayed, proof) || pins()["west"].Introduced(channel, proof) || pins()["east"].Introduced(channel, proof[1:]) {
		t.Error("a proof counts on another channel, for another cluster, or cut short")
	}
}

func TestAnswer(t *testing.T) {
	signed, err := statement().Sign(east)
	if err != nil {
		t.Fatal(err)
	}
	s, b, err := OpenAnswer(Answer{Statement: signed}.Encode(), wanted(), pins())
	if err != nil || !slices.Equal(b, signed) || !s.SaysAs(wanted()) {
		t.Errorf("got %+v, %v", s, err)
	}
	other := wanted()
	other.Key = west.Public()
	if _, _, err := OpenAnswer(Answer{Statement: signed}.Encode(), other, pins()); err == nil {
		t.Error("a statement about another key is accepted")
	}
	forged, err := statement().Sign(west)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := OpenAnswer(Answer{Statement: forged}.Encode(), wanted(), pins()); err == nil {
		t.Error("a statement that the root did not sign is accepted")
	}
	if _, _, err := OpenAnswer(Answer{Refused: "n1 is not listed"}.Encode(), wanted(), pins()); err == nil || err.Error() != "n1 is not listed" {
		t.Errorf("refused: %v", err)
	}
}

func TestCertify(t *testing.T) {
	known := Known{
		Node: clustermesh.Node{Locality: clustermesh.Locality{Region: "eu", Zone: "eu-1"}, Addresses: addrs("192.0.2.1"), Prefixes: prefixes("10.1.1.0/24")},
		Pods: prefixes("10.1.0.0/16"), Others: prefixes("10.1.2.0/24"),
	}
	want := wanted()
	want.Addresses = addrs("192.0.2.1", "192.0.2.2")
	want.Prefixes = prefixes("10.1.1.0/25", "10.1.2.7/32", "10.1.3.7/32", "10.1.0.0/16", "10.9.0.0/24")
	want.Locality.Zone = "eu-9"
	got := Certify(want, known, began)
	if !slices.Equal(got.Addresses, addrs("192.0.2.1")) {
		t.Errorf("addresses %v", got.Addresses)
	}
	// Its own; not another node's, nor all of them, nor one of no pod of the cluster.
	if !slices.Equal(got.Prefixes, prefixes("10.1.1.0/25", "10.1.3.7/32")) {
		t.Errorf("prefixes %v", got.Prefixes)
	}
	if got.Locality != known.Locality || got.Key != node.Public() {
		t.Errorf("got %+v", got)
	}
	if got.NotBefore != began.Unix() || got.Age(began.Add(Validity-time.Second)) != Late || got.Age(began.Add(Validity)) != Expired || got.Serial == 0 {
		t.Errorf("valid from %d to %d, serial %d", got.NotBefore, got.NotAfter, got.Serial)
	}
	if len(want.Prefixes) != 5 || len(want.Addresses) != 2 {
		t.Error("it changed its argument")
	}
}
