// Package embedded runs etcd and a NATS server with JetStream inside this
// process, on a data folder that survives restarts. It is what one-machine
// installations and tests stand on: the servers are the real ones, so the code
// above them takes the same paths as in a cluster.
//
// etcd listens on a unix socket that only this user can reach, and NATS on no
// socket at all, unless addresses for other processes are configured. Neither
// asks its clients who they are, which is why only loopback addresses are taken.
package embedded
