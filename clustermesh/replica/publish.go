package replica

import (
	"bytes"
	"fmt"

	"strait.io/strait/clustermesh"
	"strait.io/strait/clustermesh/record"
	"strait.io/strait/internal/problem"
)

// rivalQuiet is the number of ticks without a rival after which the hold-off starts small again.
const rivalQuiet = 64

// writer is the state of this node as a writer, of its own record and of the cluster's.
type writer struct {
	epoch, count uint64
	// content is last, encoded: what was last published in this life; nil before the first time.
	content []byte
	last    clustermesh.Content
	// cluster is the stamp of the cluster's record that this replica wrote last.
	cluster clustermesh.Stamp
	// said is content known to be the same as that of the cluster's record of version saidIn.
	said   clustermesh.Content
	saidIn Version

	// rival is true while another writer's version of our record is above ours. takeovers counts
	// how often we wrote above one, holdOff is how many ticks to wait before the next time, and
	// quiet counts the ticks since a rival was last seen.
	rival     bool
	takeovers int
	holdOff   int
	quiet     int

	// refused counts the answers since a peer was seen to hold what this node says in this epoch.
	refused int
}

// above makes the next stamp of this writer larger than all stamps of an epoch.
func (w *writer) above(epoch uint64) {
	if w.epoch <= epoch {
		w.epoch, w.count = epoch+1, 0
	}
}

// Publish writes this node's own record. Content identical to the last makes no new version, except
// that the first Publish of a life always does: a claim about an earlier life must not apply to
// this one. The content must not be changed afterwards.
func (r *Replica) Publish(content clustermesh.Content) Output {
	if r.writer.content != nil && record.Equal(&content, &r.writer.last) {
		return Output{} // the common case, found much more cheaply than by encoding
	}
	encoded, err := encMode.Marshal(content)
	if err == nil && r.writer.content != nil && bytes.Equal(encoded, r.writer.content) {
		return Output{}
	}
	if err != nil {
		return unpublishable(r.self, err)
	}
	r.writer.content, r.writer.last = encoded, content
	return r.write()
}

// Renew writes this node's own record again, so that it has a new seal. The next PublishCluster also
// compares the seal of the cluster's record.
func (r *Replica) Renew() Output {
	r.writer.saidIn = Version{}
	if r.writer.content == nil {
		return Output{}
	}
	return r.write()
}

// write makes the next version of our own record from what was last published, and spreads it.
func (r *Replica) write() Output {
	next := clustermesh.Stamp{Epoch: r.writer.epoch, Version: r.writer.count + 1}
	e, err := NewEntry(clustermesh.Record{Origin: r.self, Stamp: next, Content: r.writer.last, UID: r.uid})
	if err != nil {
		return unpublishable(r.self, err)
	}
	r.writer.count++
	c := change{now: e.Sealed(r.seal(e)), before: r.entries[r.self]}
	r.put(c.now, r.own(e.Record))
	return r.publishNews(c)
}

// PublishCluster writes the cluster's record, as its leader since electionEpoch. Content identical
// to the record in force makes no new version, even if another leader wrote that record; unless its
// seal is missing, or another root's. While another leader's term is later, it may write nothing; so
// call it again after each tick.
func (r *Replica) PublishCluster(content clustermesh.Content, electionEpoch uint64) Output {
	o := clustermesh.Origin{Cluster: r.self.Cluster}
	held, ok := r.entries[o]
	ok = ok && r.early(held) == 0 // others refuse one from the future
	if ok && r.says(held, content) {
		return Output{}
	}
	r.lead = r.lead.in(max(electionEpoch, 1))
	next := clustermesh.Stamp{Epoch: r.lead.term, Version: 1}
	switch stamp := held.Record.Stamp; {
	case !ok || stamp.Epoch < r.lead.term:
	case stamp == r.writer.cluster:
		next = clustermesh.Stamp{Epoch: stamp.Epoch, Version: stamp.Version + 1}
	case !r.lead.above(stamp.Epoch):
		return Output{} // the caller tries again
	default:
		next.Epoch = r.lead.term
	}
	e, err := NewEntry(clustermesh.Record{Origin: o, Stamp: next, Content: content, UID: r.uid})
	if err != nil {
		return unpublishable(o, err)
	}
	r.writer.cluster, r.writer.said, r.writer.saidIn = next, content, e.version
	c := change{now: e.Sealed(r.seal(e)), before: held}
	r.put(c.now, e.Record)
	return r.publishNews(c)
}

// says reports whether the cluster's record has this content, and the seal that this node would give
// it. A leader calls it in each turn, mostly with the same content as before.
func (r *Replica) says(held Entry, content clustermesh.Content) bool {
	if held.version == r.writer.saidIn && record.Equal(&content, &r.writer.said) {
		return true
	}
	usable, _ := record.Usable(held.Record.Origin, content)
	if !sameContent(held.Record.Content, usable) {
		return false
	}
	if seal := r.seal(held); len(seal) > 0 && !bytes.Equal(held.seal, seal) {
		return false
	}
	r.writer.said, r.writer.saidIn = content, held.version
	return true
}

// usurped is called when a version of our own record that we did not write in this life is above
// ours.
func (r *Replica) usurped(v Version) Output {
	r.writer.above(v.Epoch)
	r.writer.rival, r.writer.quiet = true, 0
	if r.writer.holdOff > 0 {
		return Output{}
	}
	return r.takeOver()
}

// takeOver writes our own record above the rival's. The pause before the next takeover doubles, so
// that two daemons with the same name do not fight at wire speed.
func (r *Replica) takeOver() Output {
	r.writer.rival = false
	r.writer.takeovers++
	r.writer.holdOff = 1 << min(r.writer.takeovers, 5)
	out := r.write()
	// The first time, the rival can be an earlier life of ours whose record we had lost. The second
	// time, another daemon is writing now.
	if r.writer.takeovers >= 2 {
		out.Problems = append(out.Problems, r.self.Ref().Problem(clustermesh.Problem{
			Code:    problem.NodeNameRepeated,
			Message: "another daemon publishes this node's record: are there two nodes with the same name?",
			Try:     "give every node of the cluster a unique name, or stop one of the two daemons",
		}))
	}
	return out
}

// tickRival counts down the hold-off, and takes over when it has passed and there is a rival.
func (r *Replica) tickRival() Output {
	if r.writer.quiet++; r.writer.quiet > rivalQuiet {
		r.writer.takeovers = 0
	}
	if r.writer.holdOff > 0 {
		r.writer.holdOff--
	}
	if r.writer.rival && r.writer.holdOff == 0 {
		return r.takeOver()
	}
	return Output{}
}

func sameContent(a, b clustermesh.Content) bool {
	x, errX := encMode.Marshal(a)
	y, errY := encMode.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

func unpublishable(o clustermesh.Origin, err error) Output {
	return Output{Problems: []clustermesh.Problem{o.RecordRef().Problem(clustermesh.Problem{
		Code:    problem.RecordNotPublished,
		Message: fmt.Sprintf("not published, the last version stays in force: %v", err),
		Try:     "correct the object named, or report a bug if none is named",
	})}}
}
