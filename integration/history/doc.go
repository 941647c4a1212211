// Package history records the calls to a cluster and their answers, and judges
// them as a whole. A history is right if there is one order of all operations on
// a repo, each at a moment between its call and its return, in which every answer
// is right (linearizability, decided by Porcupine).
//
// A repo is a register with these operations:
//
//	put      the next request for it; acknowledged with its epoch
//	publish  an indexer makes a new generation the served one
//	delete   the repo is gone until the next put
//	status   reads the newest epoch, the one published and the generation
//	search   reads the commit whose content is found
//	list     reads the generation
//
// An operation without an answer may take effect at any moment after the call, or
// never: it stays open to the end of the history. The cluster's own record gives
// the changes and their order (History.Written). Without it, the check would take
// time exponential in the number of unknown outcomes.
package history
