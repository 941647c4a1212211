// Package cluster holds the tests on real servers in containers: NATS, etcd and
// an S3 server, alone and replicated, and Trawl's roles from their own images,
// under the faults that a cluster must survive. README.md in the folder above
// explains how to run one of them and where to look when it fails.
package cluster
