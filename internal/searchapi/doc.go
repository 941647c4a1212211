// Package searchapi maps between the messages of trawl.search.v1 and the structs of index/search,
// and holds what router and searcher must agree on: how a query is parsed, the defaults of a
// request, the total order of files, the parts of answers that are larger than a message, the plan
// of a shard, the account of a query's shards, the form of errors, the addresses of pages, and the
// names closest to one that does not exist.
//
// Its functions keep no state and are safe for concurrent use.
package searchapi
