// Package access decides who may call, and which repos a caller may know about.
//
//	access.clock        (empty)  written by every transaction that changes a token
//	access.key          bytes    with which routers seal plans for searchers
//	access/tokens/<id>  Token    a caller's token, without its secret
//
// # Callers
//
// A caller shows a token, trawl_<id>_<secret>, to a router. The secret is 256 random
// bits, so its plain SHA-256 is stored: a slow hash protects secrets that can be
// guessed, and this one cannot. A [Directory] follows etcd, so that looking a token
// up costs no read. It proves again and again that it is current, and refuses lookups
// when it cannot.
//
// The identity of a caller travels in the context as a [Principal]. Tokens are one
// way to make one; other ways, such as certificates or OpenID Connect, would
// implement [Authenticator].
//
// # Plans
//
// The router leaves everything that its caller may not see out of its plans, and
// seals each request to a searcher ([Sealer]). A searcher answers only sealed
// requests ([Checker]): without a router's key, reaching it is of no use.
package access
