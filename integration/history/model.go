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

// Call is what a caller asks for.
type Call struct {
	Repo string
	Kind Kind
	// write is the number of the change that the call made, from 1; 0 means none.
	write int
}

// Answer is what a caller is answered. Each kind of operation uses some of the fields.
type Answer struct {
	// Missing: a delete or status finds no such repo.
	Missing bool
	// Epoch is that of a put itself, the newest one for a status, and for a publish
	// that of the request it fulfils.
	Epoch uint64
	// Revision is that of a delete.
	Revision int64
	// PublishedEpoch is part of a status.
	PublishedEpoch uint64
	// Generation is the served one, in a status, list or publish; 0 for none.
	Generation uint64
	// Commit is the number of the commit that a search finds, 0 for none.
	Commit int
}

// register is the state of a repo at one moment.
type register struct {
	// written counts the repo's changes so far.
	written int
	desired bool
	// epoch and last are the newest epoch and generation that the repo ever had;
	// deleted is the epoch at its last deletion.
	epoch, last, deleted uint64
	// generation, published and commit are what is served, 0 for none.
	generation, published uint64
	commit                int
}

// step reports whether an operation with this answer is possible now, and returns the next
// state.
func (r register) step(writes []Write, c Call, a Answer) (legal bool, next register) {
	switch c.Kind {
	case Put, Delete, Publish:
		if a.Missing {
			return !r.desired, r // there was nothing to delete
		}
		if c.write != r.written+1 {
			return false, r // it is not the next change, or the cluster has not recorded it
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

// change applies the next change.
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

// publish makes the next generation visible, or fulfils a later request with the one that
// already is.
func (r register) publish(p Answer) (legal bool, next register) {
	next = r
	next.generation, next.published, next.commit, next.last = p.Generation, p.Epoch, p.Commit, p.Generation
	legal = r.desired && p.Epoch <= r.epoch && p.Epoch > r.deleted && p.Epoch >= r.published
	if p.Generation == r.generation {
		return legal && p.Epoch > r.published && p.Commit == r.commit, next
	}
	return legal && p.Generation == r.last+1, next
}

// model is the register as a model for Porcupine. Each of its histories is of one repo.
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
