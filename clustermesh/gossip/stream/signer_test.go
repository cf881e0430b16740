package stream

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
)

// notary is a Signer that repeats what it hears, while it has a seal.
type notary struct{ sealless *atomic.Bool }

func (n notary) Signs() bool { return !n.sealless.Load() }

func (notary) ProveRoot(channel []byte) []byte { return append([]byte("I am on "), channel...) }

func (notary) Knows(Peer) bool { return false }

func (notary) Check(_, _ []byte) (Key, error) { return Key{}, nil }

func (notary) Answer(_ context.Context, p Peer, channel, request []byte) []byte {
	return slices.Concat([]byte(p.Origin.String()+" asks "), request, []byte(" on "), channel)
}

// servicesOf returns what an end offers. One named signer signs; all but one named older answer queries.
func servicesOf(e *end, name string) (s Services) {
	if name == "signer" {
		s.Signer = notary{new(atomic.Bool)}
	}
	if s.OneWay = name == "older"; !s.OneWay {
		s.Answerer = e
	}
	return s
}

// TestAskSigner: both ends know the same channel, and another connection has another one.
func TestAskSigner(t *testing.T) {
	all := ends(t, "a", "signer", "stranger")
	a, signer, stranger := all["a"], all["signer"], all["stranger"]
	var channels [][]byte
	for range 2 {
		var mine []byte
		answer, err := a.AskSigner(t.Context(), signer.addr, func(channel, introduction []byte) ([]byte, error) {
			mine = channel
			if want := append([]byte("I am on "), channel...); len(channel) != 32 || !bytes.Equal(introduction, want) {
				t.Errorf("introduction %q on channel %x", introduction, channel)
			}
			return []byte("who am I"), nil
		})
		if want := slices.Concat([]byte(a.self.String()+" asks who am I on "), mine); err != nil || !bytes.Equal(answer, want) {
			t.Fatalf("answer %q, %v; want %q", answer, err, want)
		}
		channels = append(channels, mine)
	}
	if bytes.Equal(channels[0], channels[1]) {
		t.Error("two connections have the same channel")
	}
	cold := errors.New("not you")
	if _, err := a.AskSigner(t.Context(), signer.addr, func(_, _ []byte) ([]byte, error) { return nil, cold }); !errors.Is(err, cold) {
		t.Errorf("an asker that does not trust the signer: %v", err)
	}
	never := func(_, _ []byte) ([]byte, error) { t.Error("asked"); return nil, nil }
	if _, err := signer.AskSigner(t.Context(), a.addr, never); !errors.Is(err, ErrNoSigner) {
		t.Errorf("a daemon that signs nothing: %v", err)
	}
	signer.services.Signer.(notary).sealless.Store(true)
	if _, err := a.AskSigner(t.Context(), signer.addr, never); !errors.Is(err, ErrNoSigner) {
		t.Errorf("a daemon that signs nothing any more: %v", err)
	}
	signer.services.Signer.(notary).sealless.Store(false)
	if _, err := stranger.AskSigner(t.Context(), signer.addr, never); !errors.Is(err, ErrWrongKey) {
		t.Errorf("a stranger: %v", err)
	}
}
