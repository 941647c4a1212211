// Package integration holds the end-to-end tests. Each role is a process of its
// own, started from the binary as an operator would start it, on an etcd and a
// NATS server that one more process embeds, with a folder as the bucket.
package integration
