// Package catalog is the truth of Trawl, kept in etcd: which repos are desired,
// which generation of each is served (its root), who may publish (the lease),
// and how far the work is (the status).
//
//	desired/<repo>   Desired   what must be indexed
//	roots/<repo>     Root      what is served
//	roots.clock      (random)  written by every transaction that changes one of the above
//	leases/<repo>    (empty)   the one job that may publish; dies with its etcd lease
//	status/<repo>    Status    advisory: lost without harm
//	deleted/<repo>   Root      last epoch and generation of a deleted repo, and when
//	seen/<repo>      Seen      newest commit that a webhook or source reported; advisory
//	puts/<repo>      (caller)  who put the repo first; stays as long as deleted/<repo>
//	condemned/<id>   Condemned garbage in the bucket, see below
//	holds/<id>       (empty)   the batch must wait; etcd ends it with its etcd lease
//	elections/<name> (empty)   the process that holds a duty of only one
//	compactions/<id> Compaction shards that are to become one
//	claims/<id>      (empty)   the one indexer that does it, or that makes a pack of new
//	                           repos; dies with its etcd lease
//	packs/<id>       Pack      which repos a shard of several was made of, until it is gone
//	identity         (random)  what the owner of the bucket is known by; made once
//	collection       Collection how far the collections of garbage are
//	disks/<id>       Disk      what is on the disk of a live searcher or indexer; dies with its etcd lease
//
// # Publishing
//
// Only [Store.Publish] changes what a root serves, in one transaction that compares the old
// root, the lease's fencing token and the desired record's life. A job therefore never
// publishes if it lost its lease, worked from an old root, or its repo was deleted
// meanwhile, however late its request arrives.
//
// Several small new repos may share a shard, their pack. It is made under a claim of its own,
// and [Store.PublishPacked] also compares that the claim is held. Each repo is still
// published in its own transaction, under its own lease.
//
// # Compacting
//
// [Claim.ReplaceShards] replaces roots too, with the same documents in other shards.
// Its transactions compare the old roots and the claim's key, and that no job has a
// lease of the repos: a compaction gives way to jobs, never a job to a compaction.
//
// # Garbage
//
// The key of every object in the bucket ends in the fencing token of the lease or
// claim that it was made under. A root names only objects of leases and claims that its
// transaction compares, and of the root that it replaces. An object that no root names and whose lease has ended is
// therefore garbage for ever ([Reach.Garbage]), as of one revision of etcd and
// independent of any clock. Queries that began before may still read it, so
// [Store.Condemn] makes it wait as long as etcd keeps the hold.
//
// # Deletions
//
// What a repo had before it was deleted, at a revision D, is gone for ever when
//
//   - the bucket has nothing that was garbage as of D or later ([Store.NoteCollection]);
//   - no pack made before D has documents of the repo. The record of a pack stays until
//     the object is gone from the bucket and from the searchers' disks;
//   - no live searcher has anything on its disk that was not served as of D, and no
//     live indexer anything that was not desired (package membership).
//
// [Store.Deletion] compares these, as of one revision. A repo of the same name that
// was put after D has objects of later leases, which do not count.
//
// # Reading
//
// The clock key makes "how new" one number: its modification revision R is that of
// the newest change of any repo. A linearizable read of it ([Store.CurrentRevision],
// batched over concurrent callers) followed by waiting until a [View] has applied R
// gives the roots as of a moment after the call began. The clock sorts directly
// before the roots, so that one watch holds both and a view learns of a change and
// its revision together. Its value is random, so that histories with equal revisions differ:
// package follow uses it to notice that etcd went back to an earlier copy of its data.
package catalog
