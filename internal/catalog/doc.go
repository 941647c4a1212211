// Package catalog is the truth of Trawl, kept in etcd: which repos are desired,
// which generation of each is served (its root), who may publish (the lease),
// and how far the work is (the status).
//
//	desired/<repo>   Desired   what must be indexed
//	roots/<repo>     Root      what is served
//	roots.clock      (empty)   written by every transaction that changes one of the above
//	leases/<repo>    (empty)   the one job that may publish; dies with its etcd lease
//	status/<repo>    Status    advisory: lost without harm
//	deleted/<repo>   Root      last epoch and generation of a deleted repo, nothing else
//
// # Publishing
//
// A root changes only in [Store.Publish], one transaction that compares the old
// root, the lease's fencing token and the desired record's life. A job that lost
// its lease, worked from an old root, or whose repo was deleted meanwhile
// therefore never publishes, however late its request arrives.
//
// # Reading
//
// The clock key makes one number of "how new": its modification revision R is
// that of the newest change of any repo. A linearizable read of it
// ([Store.CurrentRevision], batched over concurrent callers) followed by waiting
// until a [View] has applied R gives the roots as of a moment after the call
// began. The clock sorts directly before the roots, so that one watch holds both
// and a view learns of a change and its revision together.
package catalog
