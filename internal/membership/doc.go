// Package membership tracks which searchers are alive, which shards are theirs, and
// what searchers and indexers report of their disks.
//
// A searcher writes itself under searchers/<id> with an etcd lease: when it dies, its
// record goes with the lease. Routers and searchers follow the records, and each
// computes with [Place] where a shard is. Rendezvous hashing needs no table and no
// rebalancing: when a searcher comes or goes, only the shards that it gains or loses
// move. The replicas of a shard are in different zones, as far as searchers are.
package membership
