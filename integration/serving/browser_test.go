package serving_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestWebPagesGetNothing: a router that asks nobody who calls does not answer the page of
// another site, whichever way its browser can ask, and nothing lets such a page in.
func TestWebPagesGetNothing(t *testing.T) {
	c := startCluster(t, 1, 1)
	c.publish("host/secret", map[string]string{"a.go": "needle"})
	body := `{"Q":"needle"}`
	_, port, err := net.SplitHostPort(c.routerHTTP)
	c.must(err)
	ask := func(address, head, body string) (int, http.Header) {
		t.Helper()
		conn, err := net.Dial("tcp", address)
		c.must(err)
		defer conn.Close()
		c.must(conn.SetDeadline(time.Now().Add(time.Minute)))
		_, err = fmt.Fprintf(conn, "%s\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", strings.ReplaceAll(head, "\n", "\r\n"), len(body), body)
		c.must(err)
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			return 0, nil
		}
		defer resp.Body.Close()
		return resp.StatusCode, resp.Header
	}
	const kind = "\nContent-Type: application/json"
	for what, r := range map[string]struct {
		address, head string
		want          int
	}{
		"a program":            {c.routerHTTP, "POST /api/search HTTP/1.1\nHost: localhost:" + port + kind, 200},
		"a name rebound":       {c.routerHTTP, "POST /api/search HTTP/1.1\nHost: evil.example:" + port + "\nOrigin: http://evil.example:" + port + kind, 403},
		"another site":         {c.routerHTTP, "POST /api/search HTTP/1.1\nHost: " + c.routerHTTP + "\nOrigin: https://evil.example\nSec-Fetch-Site: cross-site" + kind, 403},
		"a form":               {c.routerHTTP, "POST /api/search HTTP/1.1\nHost: " + c.routerHTTP + "\nContent-Type: text/plain\nUser-Agent: Mozilla/4.0", 415},
		"curl -d":              {c.routerHTTP, "POST /api/search HTTP/1.1\nHost: " + c.routerHTTP + "\nContent-Type: application/x-www-form-urlencoded", 200},
		"a preflight":          {c.routerHTTP, "OPTIONS /api/search HTTP/1.1\nHost: " + c.routerHTTP + "\nOrigin: https://evil.example\nAccess-Control-Request-Method: POST", 405},
		"gRPC by HTTP/1.1":     {c.routerGRPC, "POST /trawl.search.v1.SearchService/Search HTTP/1.1\nHost: " + c.routerGRPC + "\nContent-Type: application/grpc", 0},
		"an upgrade to h2c":    {c.routerGRPC, "GET / HTTP/1.1\nHost: " + c.routerGRPC + "\nConnection: Upgrade, HTTP2-Settings\nUpgrade: h2c\nHTTP2-Settings: AAMAAABkAAQAAP__", 0},
		"HTTP/2 where it is 1": {c.routerHTTP, "PRI * HTTP/2.0\nHost: " + c.routerHTTP, 400},
	} {
		code, header := ask(r.address, r.head, body)
		if code != r.want {
			t.Errorf("%s: status %d, want %d", what, code, r.want)
		}
		for name := range header {
			if strings.HasPrefix(name, "Access-Control-") {
				t.Errorf("%s: other sites are let in by %s", what, name)
			}
		}
	}
}
