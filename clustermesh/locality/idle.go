package locality

// Idle reports whether an endpoint that gets no new connections is still where its service expects
// it, so that the connections that it has may stay:
//
//   - one that is ready, while a nearer tier carries the traffic: it answers, and to move a client
//     is not worth an error. It moves when it connects again;
//   - one that is merely not ready, and may be ready again soon.
//
// An endpoint is not idle if it is terminating, barred, on a dead machine, on a machine that does not
// answer this node, or behind a tunnel that carries nothing: it has left, or nothing that is sent there
// arrives.
func (v *Verdict) Idle() bool {
	return v.Weight == 0 && v.allowed() && !v.Terminating && !v.silent()
}
