// Package serving tests router and searchers together, as roles of one process
// on embedded etcd and NATS servers: what needs their insides, such as the
// spans of a query or the files of a cache, and many quick repetitions.
package serving
