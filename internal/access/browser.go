package access

import (
	"mime"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// A web page can make its reader's browser send requests to addresses that only the
// reader reaches, loopback included. Where callers show no token, two signs distinguish
// such a request from that of a program. A page of another site says so itself, in
// headers that scripts cannot set. A page whose name its owner points at this server (DNS
// rebinding) passes for a page of this server, but the request still carries that name in
// Host. An address in Host is harmless: a page of that origin came from this server.

// crossOrigin refuses requests that change something or carry a query, and come from
// pages of other sites.
var crossOrigin = http.NewCrossOriginProtection()

// browserRefusal returns an HTTP status and a text if the request is refused because
// it may come from a web page; otherwise the status is 0.
func (g *Guard) browserRefusal(r *http.Request) (code int, text string) {
	if name := hostName(r.Host); !g.addressedAs(name) {
		return http.StatusForbidden, "callers may not address this server as " + name +
			", which protects it from web pages: use its IP address or localhost, or name the host in --access-hosts"
	}
	if err := crossOrigin.Check(asChange(r)); err != nil {
		return http.StatusForbidden, "the request comes from a web page of another site: " + err.Error()
	}
	if r.Method != http.MethodPost || !fromBrowser(r) {
		return 0, ""
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return http.StatusUnsupportedMediaType, "send the header Content-Type: application/json"
	}
	return 0, ""
}

// asChange presents a GET that carries a query to crossOrigin as a change. Another site could
// not read the answer, but its duration reveals whether there are matches.
func asChange(r *http.Request) *http.Request {
	if r.Method != http.MethodGet || !strings.HasPrefix(r.URL.Path, searchPaths) {
		return r
	}
	change := *r
	change.Method = http.MethodPost
	return &change
}

// fromBrowser reports whether a browser may have sent the request. Browsers too old for
// the headers that crossOrigin checks name themselves Mozilla, and their forms cannot
// send JSON. zoekt's clients send queries with any content type.
func fromBrowser(r *http.Request) bool {
	return r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != "" || r.Header.Get("Referer") != "" ||
		strings.HasPrefix(r.UserAgent(), "Mozilla/")
}

// hostName is the name or address of a Host header, in lower case and without a port.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
}

// addressedAs reports whether a caller may address this server by a name. Programs that
// speak HTTP/1.0 use none.
func (g *Guard) addressedAs(name string) bool {
	if name == "" || name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return true
	}
	if _, err := netip.ParseAddr(name); err == nil {
		return true
	}
	return slices.ContainsFunc(g.limits.Hosts, func(allowed string) bool { return hostName(allowed) == name })
}
