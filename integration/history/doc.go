// Package history records what callers of a cluster asked for and were told, and
// judges it as a whole: whether there is one order of all operations on a repo,
// each at a moment between its call and its return, in which every answer is
// right (linearizability, decided by Porcupine).
//
// A repo is a register with these operations:
//
//	put      the next request for it; acknowledged with its epoch
//	publish  an indexer makes a generation what is served
//	delete   the repo is gone until the next put
//	status   reads the newest epoch, the one published and the generation
//	search   reads the commit whose content is found
//	list     reads the generation
//
// An operation whose outcome its caller was never told may happen at any moment
// after the call, or not at all: it stays open to the end of the history. What was
// changed, and in which order, the cluster's own truth tells (History.Written):
// without it, finding what many unknown outcomes were takes exponential time.
package history
