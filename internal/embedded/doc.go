// Package embedded runs etcd and a NATS server with JetStream inside this process, on
// a data folder that survives restarts. Single-machine installations and tests use
// it. The servers are the real ones, so the code above them takes the same paths as
// in a cluster.
//
// etcd listens on a unix socket that only this user can reach, and NATS on no socket
// at all, unless addresses for other processes are configured. Neither authenticates
// its clients, so only loopback addresses are allowed.
package embedded
