package authority

import "time"

// A node that was taken over has every statement that its cluster ever made about it, and each still
// has the signature of the root. So a statement about a node that is known makes those before it void.
// Serials order them. They are times, in Unix nanoseconds, because signers share no other count; so a
// clock that is wrong must neither void what is right, nor lock its node out.

// Signed returns the statement as it is signed at a time, without a signature.
func (s Statement) Signed(now time.Time) Statement {
	s.Serial, s.NotBefore, s.NotAfter = uint64(now.UnixNano()), now.Unix(), now.Add(Validity).Unix()
	return s
}

// Above returns the statement with a serial above the highest that its signer knows of the node: another
// signer's clock can be ahead of this one's. If it is ahead by more than Validity, one of the two is
// wrong. If it is the other, its serials are ignored (Older); if it is this one, what it signs has
// already expired.
func (s Statement) Above(known uint64) Statement {
	if next := known + 1; next > s.Serial && next-s.Serial <= uint64(Validity) {
		s.Serial = next
	}
	return s
}

// Older reports whether another statement of the same root, which is known already, makes this one void:
// it is later, and says something else. One from the future makes none void, because the clock of its
// signer was wrong.
func (s Statement) Older(known Statement, now time.Time) bool {
	return s.before(known, now) && !s.SaysAs(known)
}

// Latest returns which of two statements to compare others with: this one, or one that was known before
// it. An old one that says the same as the latest does not bring back what was said in between.
func (s Statement) Latest(known Statement, now time.Time) Statement {
	if s.before(known, now) {
		return known
	}
	return s
}

func (s Statement) before(known Statement, now time.Time) bool {
	return s.Root == known.Root && s.Serial < known.Serial && known.Serial <= uint64(now.Add(MaxAhead).UnixNano())
}
