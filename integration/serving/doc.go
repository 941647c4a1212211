// Package serving tests router and searchers together, as roles of one process
// on embedded etcd and NATS servers. It has the tests that look inside the
// roles, such as at the spans of a query or the files of a cache, and those that
// need many quick repetitions.
package serving
