package codehost

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/trawl-search/trawl/internal/config"
	"github.com/trawl-search/trawl/internal/gitsource/origin"
)

// pageTimeout bounds one page.
const pageTimeout = time.Minute

// Client lists the repos of one source. It caches pages for conditional requests. It is
// for one goroutine.
type Client struct {
	policy  origin.Policy
	secrets Secrets
	http    *http.Client
	// cache has the pages of the last whole list by address, and part those of the list since then that failed.
	cache, part map[string]cached
}

// cached is a page with its entity tag.
type cached struct {
	page

	tag string
}

// bytes is how many bytes a host made Trawl keep.
func (c cached) bytes() int {
	n := len(c.tag) + len(c.next)
	for _, r := range c.repos {
		n += len(r.ID) + len(r.Path) + len(r.CloneURL)
	}
	return n
}

// NewClient makes a client that connects only to addresses that the policy allows. The file holds
// certificate authorities for https in PEM, in addition to the system's; "" means the system's
// alone. The caller closes the client.
func NewClient(policy origin.Policy, caFile string, secrets Secrets) (*Client, error) {
	c := &Client{policy: policy, secrets: secrets}
	trusted := &tls.Config{MinVersion: tls.VersionTLS12}
	if caFile != "" {
		pem, err := os.ReadFile(caFile)
		if err != nil {
			return nil, fmt.Errorf("read certificate authorities: %w", err)
		}
		trusted.RootCAs, err = x509.SystemCertPool()
		if err != nil {
			return nil, fmt.Errorf("read the system's certificate authorities: %w", err)
		}
		if !trusted.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("read certificate authorities: found none in %s", caFile)
		}
	}
	c.http = &http.Client{
		Timeout: pageTimeout,
		Transport: &http.Transport{
			DialContext: c.dial, TLSClientConfig: trusted, MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Minute, ForceAttemptHTTP2: true,
		},
		CheckRedirect: sameHost,
	}
	return c, nil
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// dial connects to the very address that was checked, since a name may resolve to
// another one a moment later.
func (c *Client) dial(ctx context.Context, network, hostport string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(hostport)
	if err != nil {
		return nil, fmt.Errorf("connect to a Git host: %w", err)
	}
	addr, err := c.policy.AllowedAddress(ctx, host, port)
	if err != nil {
		return nil, err
	}
	return (&net.Dialer{Timeout: 30 * time.Second}).DialContext(ctx, network, net.JoinHostPort(addr.String(), port))
}

// errElsewhere refuses pages and redirects at another host than the first.
var errElsewhere = errors.New("the host leads to another one, which would get the credentials")

// sameHost follows redirects on the same host, as after an owner was renamed.
func sameHost(r *http.Request, via []*http.Request) error {
	if !sameOrigin(via[0].URL, r.URL) {
		return errElsewhere
	}
	if len(via) > 5 {
		return errors.New("the host redirects in a circle")
	}
	return nil
}

// sameOrigin reports whether two addresses are of the same scheme, host and port, however hosts write them.
func sameOrigin(a, b *url.URL) bool {
	port := func(u *url.URL) string {
		return cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	}
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && port(a) == port(b)
}

// listing is the state of one List.
type listing struct {
	*Client

	host     dialect
	base     string
	username string
	token    config.Secret
}

// page requests one page, conditionally if it is cached and shows with its tag whether another one follows.
func (a *listing) page(ctx context.Context, at string) (cached, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return cached{}, trouble("the host's next page has no address")
	}
	if base, err := url.Parse(a.base); err != nil || !sameOrigin(base, r.URL) {
		return cached{}, trouble("%v", errElsewhere)
	}
	r.Header.Set("Accept", "application/json")
	r.Header.Set("User-Agent", "trawl")
	if a.token != "" {
		a.host.authorize(r, a.username, a.token)
	}
	known, again := a.part[at]
	if !again {
		known, again = a.cache[at]
	}
	conditional := again && known.tag != "" && (known.next != "" || known.fixed)
	if conditional {
		r.Header.Set("If-None-Match", known.tag)
	}
	resp, err := a.http.Do(r)
	if err != nil {
		return cached{}, unreachable(ctx, err)
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusNotModified && conditional:
		return known, nil
	case resp.StatusCode != http.StatusOK:
		return cached{}, refusal(resp)
	}
	answer, err := a.read(resp)
	if err != nil {
		return cached{}, err
	}
	return answer, nothingLeft(answer, resp.Header)
}

// read decodes a response.
func (a *listing) read(resp *http.Response) (cached, error) {
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxPage+1))
	if err != nil {
		return cached{}, unreachable(resp.Request.Context(), err)
	}
	if len(body) > maxPage {
		return cached{}, trouble("a page of the host has more than %d MiB: is this the address of its API?", maxPage>>20)
	}
	answer, err := a.host.read(body, resp.Request.URL, resp.Header)
	if refused, ok := errors.AsType[*Error](err); ok {
		return cached{}, refused
	}
	if err != nil {
		return cached{}, trouble("the host's answer cannot be understood: is this the address of its API?")
	}
	return cached{page: answer, tag: resp.Header.Get("ETag")}, nil
}

// unreachable makes an *Error of a failed connection. The messages of net/http hold the
// address, which never holds credentials.
func unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if rule, ok := errors.AsType[*origin.RuleError](err); ok {
		return trouble("%v", rule)
	}
	if inner, ok := errors.AsType[*url.Error](err); ok {
		err = inner.Err
	}
	return trouble("the host cannot be reached: %v", err)
}
