package searchapi

import (
	"fmt"
	"slices"

	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// standing is the outcome of a shard. If a query takes several rounds, a shard may have
// several outcomes. The highest counts: what one round missed is missing from the answer.
type standing uint8

const (
	unmarked standing = iota
	pruned
	searched
	notReached
	inPart
	failed
)

type accounted struct {
	digest  Digest
	state   standing
	reason  searchv1.UncoveredReason
	message string
}

// NoTurn is the message of a shard whose request was not sent to any searcher in
// time.
const NoTurn = "its turn did not come before the deadline"

// Account accounts for every shard of one query: each one was searched, pruned, failed, or not
// reached, and the account says which and why. Routers and searchers keep one account a query,
// and routers check those of searchers. Requested = searched + pruned + failed +
// not reached holds after every call, in any order of calls.
// It must not be used concurrently.
type Account struct {
	requested int
	shards    []accounted
	// index maps digests to places in shards, once there are many shards.
	index map[Digest]int
}

// fewShards is the number up to which shards are searched linearly.
const fewShards = 16

// NewAccount opens the account of a query that should search the given shards.
// A digest given twice counts once.
func NewAccount(shards []Shard) *Account {
	a := OpenAccount(0)
	a.Want(shards)
	a.requested = len(a.shards)
	return a
}

// OpenAccount opens the account of a query over that many shards. Shards that Want never names
// are pruned.
func OpenAccount(requested int) *Account {
	return &Account{requested: requested}
}

// Want starts a round that should search the given shards. A shard that an earlier round
// searched or pruned must be searched again.
func (a *Account) Want(shards []Shard) {
	a.shards = slices.Grow(a.shards, len(shards))
	for _, s := range shards {
		i, known := a.place(s.Digest)
		if !known {
			a.add(s.Digest, len(shards))
			continue
		}
		if a.shards[i].state <= searched {
			a.shards[i].state = unmarked
		}
	}
}

func (a *Account) place(d Digest) (i int, known bool) {
	if a.index != nil {
		i, known = a.index[d]
		return i, known
	}
	i = slices.IndexFunc(a.shards, func(s accounted) bool { return s.digest == d })
	return i, i >= 0
}

// add adds a shard to the account; about is a hint of how many there will be.
func (a *Account) add(d Digest, about int) {
	if len(a.shards) == fewShards {
		a.index = make(map[Digest]int, about)
		for i := range a.shards {
			a.index[a.shards[i].digest] = i
		}
	}
	if a.index != nil {
		a.index[d] = len(a.shards)
	}
	a.shards = append(a.shards, accounted{digest: d})
}

// Searched records that the shard was searched to its end.
func (a *Account) Searched(d Digest) {
	a.mark(d, searched, searchv1.UncoveredReason_UNCOVERED_REASON_UNSPECIFIED, "")
}

// Pruned records that the shard need not be searched, although the round wanted it.
func (a *Account) Pruned(d Digest) {
	a.mark(d, pruned, searchv1.UncoveredReason_UNCOVERED_REASON_UNSPECIFIED, "")
}

// Uncovered records that the shard was not searched. It counts as not
// reached if the reason is the deadline, and as failed otherwise.
func (a *Account) Uncovered(d Digest, reason searchv1.UncoveredReason, message string) {
	state := failed
	if reason == searchv1.UncoveredReason_UNCOVERED_REASON_DEADLINE {
		state = notReached
	}
	a.mark(d, state, reason, message)
}

// InPart records that the shard was searched in part before the deadline. It counts as not reached.
func (a *Account) InPart(d Digest, message string) {
	a.mark(d, inPart, searchv1.UncoveredReason_UNCOVERED_REASON_DEADLINE, message)
}

// mark ignores shards that are not in the account, since the query does not want them.
func (a *Account) mark(d Digest, state standing, reason searchv1.UncoveredReason, message string) {
	i, ok := a.place(d)
	if !ok || state <= a.shards[i].state {
		return
	}
	s := &a.shards[i]
	s.state, s.reason, s.message = state, reason, message
}

// Coverage is the account so far. A shard without an outcome was not reached. The account does
// not know the names of the repos in uncovered shards.
func (a *Account) Coverage() *searchv1.Coverage {
	c := &searchv1.Coverage{Requested: uint64(a.requested), Pruned: uint64(a.requested - len(a.shards))}
	for i := range a.shards {
		a.shards[i].addTo(c)
	}
	c.Complete = c.Failed == 0 && c.NotReached == 0
	return c
}

func (s *accounted) addTo(c *searchv1.Coverage) {
	switch s.state {
	case searched:
		c.Searched++
		return
	case pruned:
		c.Pruned++
		return
	case failed:
		c.Failed++
	case inPart:
		c.NotReached++
		c.InPart++
	case notReached:
		c.NotReached++
	case unmarked:
		c.NotReached++
		s.reason = searchv1.UncoveredReason_UNCOVERED_REASON_DEADLINE
		s.message = NoTurn
	}
	c.Uncovered = append(c.Uncovered, &searchv1.UncoveredShard{
		Digest: s.digest[:], Reason: s.reason, Message: s.message, InPart: s.state == inPart,
	})
}

// CheckCoverage returns an error unless a searcher's coverage accounts for exactly the shards that
// were sent to it. An answer that fails the check must not be used: a shard that it does
// not mention would pass for searched.
func CheckCoverage(c *searchv1.Coverage, sent []Shard) error {
	switch {
	case c.GetRequested() > uint64(len(sent)):
		return fmt.Errorf("the coverage is of %d shards, but %d were sent", c.GetRequested(), len(sent))
	case c.GetSearched()+c.GetPruned()+c.GetFailed()+c.GetNotReached() != c.GetRequested():
		return fmt.Errorf("the coverage does not add up: %d requested, %d searched, %d pruned, %d failed, %d not reached",
			c.Requested, c.Searched, c.Pruned, c.Failed, c.NotReached)
	case c.GetRequested() == uint64(len(sent)) && c.GetFailed()+c.GetNotReached() == 0 && len(c.GetUncovered()) == 0:
		return nil // the usual case, without checking each shard
	}
	asked := make(map[Digest]bool, len(sent))
	for _, s := range sent {
		asked[s.Digest] = true
	}
	if c.GetRequested() != uint64(len(asked)) {
		return fmt.Errorf("the coverage is of %d shards, but %d were sent", c.GetRequested(), len(asked))
	}
	return checkUncovered(c, asked)
}

func checkUncovered(c *searchv1.Coverage, asked map[Digest]bool) error {
	if uint64(len(c.Uncovered)) != c.Failed+c.NotReached {
		return fmt.Errorf("the coverage names %d of %d uncovered shards", len(c.Uncovered), c.Failed+c.NotReached)
	}
	for _, u := range c.Uncovered {
		d, err := ParseDigest(u.Digest)
		if err != nil {
			return err
		}
		if !asked[d] {
			return fmt.Errorf("the coverage names shard %s, which was not sent or is named twice", d)
		}
		delete(asked, d)
	}
	return nil
}
