// Package tlsfiles makes TLS from files of certificates and keys, for listeners and for
// clients, and reads the files again when they change.
//
// The files are read at handshakes, at most once in a second, and taken over when they
// fit together: a new certificate, key or CA needs no restart. Files that cannot be
// used are logged, and what was read before stays in use. Connections that exist are not
// ended: what changes counts for the next handshake.
//
// The roles of Trawl know each other by names in their certificates, not by the address
// where they happen to run: a URI such as spiffe://trawl/router, or a DNS name.
package tlsfiles
