package hostile

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"
)

// Page is a request that a page of another site can make a browser send to a router, or one
// that looks like it. Its body is Body, a query for needle.
type Page struct {
	Name string
	// Want is the status from a router without access control; 0: no HTTP response.
	Want int

	address, head string
}

// Body is the query of all pages.
const Body = `{"Q":"needle"}`

// Pages returns requests to a router, given the addresses of its listeners.
func Pages(grpc, http string) []Page {
	const kind = "\nContent-Type: application/json"
	_, port, _ := net.SplitHostPort(http)
	return []Page{
		{"a program", 200, http, "POST /api/search HTTP/1.1\nHost: localhost:" + port + kind},
		{"a name rebound", 403, http, "POST /api/search HTTP/1.1\nHost: evil.example:" + port + "\nOrigin: http://evil.example:" + port + kind},
		{"another site", 403, http, "POST /api/search HTTP/1.1\nHost: " + http + "\nOrigin: https://evil.example\nSec-Fetch-Site: cross-site" + kind},
		{"a form", 415, http, "POST /api/search HTTP/1.1\nHost: " + http + "\nContent-Type: text/plain\nUser-Agent: Mozilla/4.0"},
		{"curl -d", 200, http, "POST /api/search HTTP/1.1\nHost: " + http + "\nContent-Type: application/x-www-form-urlencoded"},
		{"a preflight", 405, http, "OPTIONS /api/search HTTP/1.1\nHost: " + http + "\nOrigin: https://evil.example\nAccess-Control-Request-Method: POST"},
		{"an image of another site", 403, http, "GET /api/v1/search?q=needle HTTP/1.1\nHost: " + http + "\nSec-Fetch-Site: cross-site"},
		{"a GET of a program", 200, http, "GET /api/v1/search?q=needle HTTP/1.1\nHost: " + http},
		{"gRPC by HTTP/1.1", 0, grpc, "POST /trawl.search.v1.SearchService/Search HTTP/1.1\nHost: " + grpc + "\nContent-Type: application/grpc"},
		{"an upgrade to h2c", 0, grpc, "GET / HTTP/1.1\nHost: " + grpc + "\nConnection: Upgrade, HTTP2-Settings\nUpgrade: h2c\nHTTP2-Settings: AAMAAABkAAQAAP__"},
		{"HTTP/2 where it is 1", 400, http, "PRI * HTTP/2.0\nHost: " + http},
	}
}

// Send sends the request, and returns the status and the headers of the response; 0 if there is
// none.
func (p Page) Send(ctx context.Context) (status int, head http.Header, err error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", p.address)
	if err != nil {
		return 0, nil, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		return 0, nil, err
	}
	_, err = fmt.Fprintf(conn, "%s\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", strings.ReplaceAll(p.head, "\n", "\r\n"), len(Body), Body)
	if err != nil {
		return 0, nil, err
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, nil, nil // no response is an expected outcome
	}
	defer resp.Body.Close()
	return resp.StatusCode, resp.Header, nil
}
