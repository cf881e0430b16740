package authority

import "time"

// An attacker who took over a node has every statement that its cluster ever signed about it, and the
// signatures stay valid. So a later statement about a node invalidates the earlier ones. Serials order
// them. They are times, in Unix nanoseconds, because signers share no counter. So a wrong clock must
// neither invalidate right statements nor lock its node out.

// Signed returns the statement with the serial and the times of one that is signed now. It has no signature.
func (s Statement) Signed(now time.Time) Statement {
	s.Serial, s.NotBefore, s.NotAfter = uint64(now.UnixNano()), now.Unix(), now.Add(Validity).Unix()
	return s
}

// Above returns the statement with a serial above the highest that its signer knows for the node: another
// signer's clock can be ahead of this one's. If it is ahead by more than Validity, one of the two is
// wrong. If it is the other, its serials are ignored (Older). If it is this one, its statements have
// already expired.
func (s Statement) Above(known uint64) Statement {
	if next := known + 1; next > s.Serial && next-s.Serial <= uint64(Validity) {
		s.Serial = next
	}
	return s
}

// Older reports whether a known statement of the same root invalidates this one: it is later, and
// certifies something else. One from the future invalidates none, because the clock of its signer was
// wrong.
func (s Statement) Older(known Statement, now time.Time) bool {
	return s.before(known, now) && !s.Matches(known)
}

// Latest returns which of two statements to compare others with: this one, or one that was known before
// it. An old statement that is equal to the latest does not make those in between valid again.
func (s Statement) Latest(known Statement, now time.Time) Statement {
	if s.before(known, now) {
		return known
	}
	return s
}

func (s Statement) before(known Statement, now time.Time) bool {
	return s.Root == known.Root && s.Serial < known.Serial && known.Serial <= uint64(now.Add(MaxAhead).UnixNano())
}
