// Package membership knows which searchers are alive, which shards are theirs, and
// what searchers and indexers report of their disks.
//
// A searcher writes itself under searchers/<id> with an etcd lease: when it dies,
// its record goes with the lease. Routers and searchers follow the records, and
// each works out by itself, with [Place], where a shard is: rendezvous hashing
// needs no table and no rebalancing, and when a searcher comes or goes only the
// shards move that it gains or had. The replicas of a shard are in different zones, as
// far as there are searchers in different zones.
package membership
