// Package compact merges published shards into fewer and smaller ones: the base and
// the deltas of a repo, the shards of many small repos, and shared shards that are
// largely dead.
//
//	Scheduler  in the leading indexer: plans compactions from all roots, in etcd
//	Worker     in every indexer: claims a plan, merges, uploads, replaces the roots
//
// Any indexer may stop a compaction at any point and repeat it. The names of the
// objects that it uploaded hold its claim's fencing token, and they become garbage
// with the claim. The transaction that replaces a root succeeds only for the holder
// of the claim, for a root that is as it was planned, and for a repo without a job
// (package catalog). A root is replaced in one transaction, so that no reader sees a
// mix of old and new shards.
package compact
