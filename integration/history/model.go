package history

import (
	"fmt"

	"github.com/anishathalye/porcupine"
)

// Kind is what an operation does.
type Kind string

// Kinds of operations.
const (
	Put     Kind = "put"
	Publish Kind = "publish"
	Delete  Kind = "delete"
	Status  Kind = "status"
	Search  Kind = "search"
	List    Kind = "list"
)

// Call is what is asked for.
type Call struct {
	Repo string
	Kind Kind
	// write is the number of the change that was made, from 1; 0 is for none.
	write int
}

// Answer is what a caller is told. Each kind of operation has fields of its own.
type Answer struct {
	// Missing: there is no such repo, as a delete or status says.
	Missing bool
	// Epoch of a put is its own, of a status the newest, of a publish the
	// request's that it answers.
	Epoch uint64
	// Revision of a delete is its own.
	Revision int64
	// PublishedEpoch is what a status says.
	PublishedEpoch uint64
	// Generation that is served: of status and list, 0 for none.
	Generation uint64
	// Commit is the number of the commit that a search finds, 0 for none.
	Commit int
}

// register is what is true of a repo at one moment.
type register struct {
	// written is how many of the repo's changes were made.
	written int
	desired bool
	// epoch and last are the newest epoch and generation that the repo ever had,
	// and deleted the epoch at its last deletion.
	epoch, last, deleted uint64
	// What is served, 0 for none.
	generation, published uint64
	commit                int
}

// step says whether an operation with this answer may happen to the register
// now, and what is true then.
func (r register) step(writes []Write, c Call, a Answer) (legal bool, next register) {
	switch c.Kind {
	case Put, Delete, Publish:
		if a.Missing {
			return !r.desired, r // there was nothing to delete
		}
		if c.write != r.written+1 {
			return false, r // it is not next, or the cluster knows nothing of it
		}
		return r.change(writes[r.written])
	case Status:
		if a.Missing || !r.desired {
			return a.Missing && !r.desired, r
		}
		return a.Epoch == r.epoch && a.PublishedEpoch == r.published && a.Generation == r.generation, r
	case Search:
		return a.Commit == r.commit, r
	case List:
		return a.Generation == r.generation, r
	}
	return false, r
}

// change makes the next change.
func (r register) change(w Write) (legal bool, next register) {
	r.written++
	switch w.Kind {
	case Put:
		r.desired, r.epoch = true, r.epoch+1
		return w.Epoch == r.epoch, r
	case Delete:
		return r.desired, register{written: r.written, epoch: r.epoch, last: r.last, deleted: r.epoch}
	}
	return r.publish(w.Answer)
}

// publish makes the next generation visible, or answers a later request with the
// one that is.
func (r register) publish(p Answer) (legal bool, next register) {
	next = r
	next.generation, next.published, next.commit, next.last = p.Generation, p.Epoch, p.Commit, p.Generation
	legal = r.desired && p.Epoch <= r.epoch && p.Epoch > r.deleted && p.Epoch >= r.published
	if p.Generation == r.generation {
		return legal && p.Epoch > r.published && p.Commit == r.commit, next
	}
	return legal && p.Generation == r.last+1, next
}

// model is the register for Porcupine, whose histories are of one repo each.
func model(writes []Write) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return register{} },
		Step: func(state, call, answer any) (bool, any) {
			r, _ := state.(register)
			c, _ := call.(Call)
			a, _ := answer.(Answer)
			return r.step(writes, c, a)
		},
		DescribeOperation: func(call, answer any) string {
			c, _ := call.(Call)
			a, _ := answer.(Answer)
			return c.Kind.describe(a)
		},
		DescribeState: func(state any) string { return fmt.Sprintf("%+v", state) },
	}
}

func (k Kind) describe(a Answer) string {
	switch {
	case a.Missing:
		return string(k) + " → no such repo"
	case k == Put && a.Epoch == 0, k == Delete && a.Revision == 0:
		return string(k) + " → ?"
	case k == Put:
		return fmt.Sprintf("put → epoch %d", a.Epoch)
	case k == Delete:
		return fmt.Sprintf("delete → revision %d", a.Revision)
	case k == Publish:
		return fmt.Sprintf("publish generation %d, commit %d for epoch %d", a.Generation, a.Commit, a.Epoch)
	case k == Status:
		return fmt.Sprintf("status → epoch %d, published %d, generation %d", a.Epoch, a.PublishedEpoch, a.Generation)
	case k == Search:
		return fmt.Sprintf("search → commit %d", a.Commit)
	}
	return fmt.Sprintf("%s → generation %d", k, a.Generation)
}
