// Package searchwire maps between the messages of trawl.search.v1 and the
// structs of index/shard, and holds what router and searcher must agree on:
// the defaults of a request, the total order of files, the account of
// coverage, and the shape of errors.
//
// Its functions keep no state and are safe for concurrent use; an Account says
// for itself how it may be used.
package searchwire
