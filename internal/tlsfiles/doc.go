// Package tlsfiles makes TLS configurations from files of certificates and keys, for
// listeners and for clients, and reads the files again when they change.
//
// The files are read at handshakes, at most once a second, and take effect when they fit
// together: a new certificate, key or CA needs no restart. Invalid files are logged, and
// the last valid ones stay in use. Existing connections are not ended: a change counts
// from the next handshake on.
//
// The roles of Trawl know each other by names in their certificates, not by the address
// where they happen to run: a URI such as spiffe://trawl/router, or a DNS name.
package tlsfiles
