package history

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
)

// History records calls and answers. It is safe for concurrent use.
type History struct {
	start time.Time

	mu  sync.Mutex
	ops map[string][]*Operation // by repo
	// writes are the changes of each repo, in their order.
	writes map[string][]Write
}

// New begins a history.
func New() *History {
	return &History{start: time.Now(), ops: map[string][]*Operation{}, writes: map[string][]Write{}}
}

// Operation is a recorded call.
type Operation struct {
	Call
	Answer

	client         int
	called, ended  time.Duration
	open, returned bool
}

// Begin records a call. A client number may have one call in progress at a time. The caller
// ends the call with End, or with Lost if the outcome of a change is unknown. A call ended by
// neither, such as a failed read, is ignored.
func (h *History) Begin(client int, c Call) *Operation {
	h.mu.Lock()
	defer h.mu.Unlock()
	op := &Operation{Call: c, client: client, called: time.Since(h.start)}
	h.ops[c.Repo] = append(h.ops[c.Repo], op)
	return op
}

// End records the answer.
func (h *History) End(op *Operation, a Answer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	op.Answer, op.ended, op.returned = a, time.Since(h.start), true
}

// Lost records that the outcome of a put or delete is unknown.
func (h *History) Lost(op *Operation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	op.open = true
}

// Write is a change of a repo that the cluster has recorded: a Put with its Epoch, a
// Delete with its Revision, or a Publish with everything that it made visible.
type Write struct {
	Kind Kind
	Answer
}

// id identifies a put or delete among those of its kind.
func (a Answer) id() uint64 { return max(a.Epoch, uint64(a.Revision)) }

// Written adds all changes of a repo, in the order in which the cluster has recorded them.
// Only the callers' answers show when each became visible. The changes make a history with
// many unknown outcomes quick to judge: a call without an answer either made one of them or
// had no effect. Written returns an ErrNotLinearizable if nobody called for one of the
// changes. Call it once per repo, after all calls have ended.
func (h *History) Written(repo string, writes []Write) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.writes[repo] = writes
	puts, deletes := h.calls(repo, Put), h.calls(repo, Delete)
	asked := map[uint64]*Operation{} // by epoch
	for i, w := range writes {
		var op *Operation
		switch w.Kind {
		case Put:
			op = puts.take(w)
			asked[w.Epoch] = op
		case Delete:
			op = deletes.take(w)
		case Publish:
			if put := asked[w.Epoch]; put != nil {
				op = &Operation{Call: Call{Repo: repo, Kind: Publish}, Answer: w.Answer, called: put.called, open: true}
				h.ops[repo] = append(h.ops[repo], op)
			}
		}
		if op == nil {
			return fmt.Errorf("%w: %s: nobody has called for change %d, %s", ErrNotLinearizable, repo, i+1, w.Kind.describe(w.Answer))
		}
		op.write = i + 1
	}
	return nil
}

// calls holds the calls of one kind that may have changed a repo.
type calls struct {
	answered map[uint64]*Operation
	lost     []*Operation // without an answer, in order of their calls
}

func (h *History) calls(repo string, kind Kind) *calls {
	c := &calls{answered: map[uint64]*Operation{}}
	for _, op := range h.ops[repo] {
		switch {
		case op.Kind != kind || op.Missing:
		case op.open:
			c.lost = append(c.lost, op)
		case op.returned:
			c.answered[op.id()] = op
		}
	}
	return c
}

// take returns and uses up the call that made a change, nil if there is none. Calls without
// an answer differ only in when they began: if any of them explains the change, the first does.
func (c *calls) take(w Write) (op *Operation) {
	if op = c.answered[w.id()]; op == nil && len(c.lost) > 0 {
		op, c.lost = c.lost[0], c.lost[1:]
	}
	return op
}

// Counts returns how many operations of each kind have an answer or stay open.
func (h *History) Counts() map[Kind]int {
	h.mu.Lock()
	defer h.mu.Unlock()
	counts := map[Kind]int{}
	for _, ops := range h.ops {
		for _, op := range ops {
			if op.returned || op.open {
				counts[op.Kind]++
			}
		}
	}
	return counts
}

// ErrNotLinearizable means that no order of the operations explains all answers.
var ErrNotLinearizable = errors.New("the history is not linearizable")

// Check judges each repo's history against its changes (see Written), each within the given
// time. For a history that fails it writes a page into the folder that shows how much of an
// order was found; the error names the page. Call Check after all operations have ended.
func (h *History) Check(within time.Duration, folder string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	var errs []error
	for _, repo := range slices.Sorted(maps.Keys(h.ops)) {
		m := model(h.writes[repo])
		result, info := porcupine.CheckOperationsVerbose(m, operations(h.ops[repo]), within)
		switch result {
		case porcupine.Illegal:
			errs = append(errs, fmt.Errorf("%w: %s: %w", ErrNotLinearizable, repo, show(m, info, folder, repo)))
		case porcupine.Unknown:
			errs = append(errs, fmt.Errorf("%s: not decided within %v", repo, within))
		}
	}
	return errors.Join(errs...)
}

// show writes the page of a failure, and returns its path as an error.
func show(m porcupine.Model, info porcupine.LinearizationInfo, folder, repo string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("no page was written: %w", err)
	}
	page := filepath.Join(folder, strings.ReplaceAll(repo, "/", "_")+".html")
	if err := porcupine.VisualizePath(m, info, page); err != nil {
		return fmt.Errorf("no page was written: %w", err)
	}
	return fmt.Errorf("see %s", page)
}

// operations converts the operations that took effect for Porcupine.
func operations(ops []*Operation) (list []porcupine.Operation) {
	end, lanes := time.Duration(0), 0
	for _, op := range ops {
		end, lanes = max(end, op.called, op.ended), max(lanes, op.client+1)
	}
	for _, op := range ops {
		if !op.returned && (!op.open || op.write == 0) {
			continue
		}
		o := porcupine.Operation{ClientId: op.client, Input: op.Call, Output: op.Answer, Call: int64(op.called), Return: int64(op.ended)}
		if op.open {
			// Its client makes further calls meanwhile, so it needs a lane of its own on the page.
			o.ClientId, o.Return = lanes, int64(end+1)
			lanes++
		}
		list = append(list, o)
	}
	return list
}
