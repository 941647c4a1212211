// Package queue wakes indexers: a JetStream work queue of jobs, and a stream of
// dead letters that says which jobs were given up and why.
//
// A job only says that a repo has work. What is desired is in the catalog, so a
// queue that lost everything costs time, never a request: whoever reconciles the
// catalog enqueues again.
//
// A message is acknowledged, with the server's confirmation, only after its
// handler succeeded. A handler that crashes the process is therefore met again
// by the same job; deliveries are counted by the server, and the job becomes a
// dead letter when it has been delivered too often without an outcome.
package queue
