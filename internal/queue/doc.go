// Package queue wakes indexers: a JetStream work queue of jobs, and a stream of
// dead letters that says which jobs were given up and why.
//
// A job only says that a repo has work. The catalog holds what is desired, so a queue that
// lost all of its messages costs time but no request: the reconciler enqueues again.
//
// A message is acknowledged, with the server's confirmation, only after its handler
// succeeded. A job that crashes its process is therefore delivered again. The server
// counts deliveries, and a job that was delivered too often without an outcome becomes a
// dead letter.
package queue
