// Package access decides who may call and which repos a caller may know of.
//
//	access.clock        (empty)  written by every transaction that changes a token
//	access.key          bytes    with which routers seal plans for searchers
//	access/tokens/<id>  Token    a caller's token, without its secret
//
// # Callers
//
// A caller shows a token, trawl_<id>_<secret>, to a router. The secret is 256
// random bits, so a plain SHA-256 of it is kept: a slow hash protects secrets
// that can be guessed, and nobody guesses this one. A [Directory] follows etcd,
// so that looking a token up costs no read, and proves every moment that it is
// not behind: what it does not know to be current it refuses to answer from.
//
// What is known of a caller travels in the context as a [Principal]. Tokens are
// one way to make one; certificates and OpenID Connect have their place beside
// them, behind [Authenticator].
//
// # Plans
//
// The router leaves everything that its caller may not see out of the plans it
// makes, and seals each request to a searcher ([Sealer]). A searcher answers
// nothing else ([Checker]): who reaches it without a router's key gets nothing.
package access
