package authority

import (
	"slices"
	"strings"
	"testing"

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
	if r, err := OpenRequest(b, channel); err != nil || r.Token != "token" || !r.Want.Matches(wanted()) {
		t.Errorf("got %+v, %v", r, err)
	}
	if _, err := OpenRequest(b, relayed); err == nil {
		t.Error("a request counts on a channel that it was not made for")
	}
	if b, err = (Request{Want: wanted()}).Sign(west, channel); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenRequest(b, channel); err == nil {
		t.Error("a requester gets a statement about a key that it does not have")
	}
	if _, err := OpenRequest(make([]byte, MaxRequest+1), channel); err == nil || !strings.Contains(err.Error(), "limit") {
		t.Errorf("a request that is too long: %v", err)
	}
}

func TestIntroduce(t *testing.T) {
	proof := east.ProveRoot(channel)
	if !pins()["east"].VerifyRoot(channel, proof) {
		t.Error("the root is not believed to be the root")
	}
	if pins()["east"].VerifyRoot(relayed, proof) || pins()["west"].VerifyRoot(channel, proof) || pins()["east"].VerifyRoot(channel, proof[1:]) {
		t.Error("a proof counts on another channel, for another cluster, or cut short")
	}
}

func TestAnswer(t *testing.T) {
	signed, err := statement().Sign(east)
	if err != nil {
		t.Fatal(err)
	}
	left := []clustermesh.Problem{{Code: "STR2320", Object: "node east/n1", Field: "prefixes", Message: "it claims another's", Try: "correct it"}}
	s, a, err := OpenAnswer(Answer{Statement: signed, Left: left}.Encode(), wanted(), pins())
	if err != nil || !slices.Equal(a.Statement, signed) || !slices.Equal(a.Left, left) || !s.Matches(wanted()) {
		t.Errorf("got %+v, %+v, %v", s, a, err)
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
