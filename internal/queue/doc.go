// Package queue wakes indexers. It is a JetStream work queue of jobs, and a stream of
// dead letters that say which jobs were given up and why.
//
// A job only says that a repo has work. The catalog holds the requests, so the loss of all
// messages costs time but no request: the reconciler enqueues the jobs again.
//
// A message is acknowledged, with the server's confirmation, only after its handler
// succeeded. A job that crashes its process is therefore delivered again. The server
// counts deliveries, and a job that was delivered too often without an outcome becomes a
// dead letter.
package queue
