// Package compact merges shards that were written into fewer and smaller ones:
// the base and the deltas of a repo, the shards of many small repos, and shared
// shards of which much is nobody's any more.
//
//	scheduler  in the indexer that leads: plans, from all roots, into etcd
//	worker     in every indexer: claims a plan, merges, uploads, flips the roots
//
// A compaction may be stopped at any point and done again by anyone: what it has
// put into the bucket is named by its claim and becomes garbage with it, and the
// transactions that flip roots hold only for the holder of the claim, and for
// roots that are as they were planned, of repos that no job works on (package
// catalog). Each repo is flipped at once, so that no reader sees a mix.
package compact
