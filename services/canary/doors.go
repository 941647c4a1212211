package canary

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/trawl-search/trawl/internal/access"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

const (
	// deadline is the time that the canary gives for an answer, and lateness how much longer it waits over HTTP.
	deadline = 5 * time.Second
	lateness = 500 * time.Millisecond
	// maxAnswer bounds an answer over HTTP, in bytes.
	maxAnswer = 1 << 20
)

// answer is what a caller sees of the answer to a query for one word.
type answer struct{ found, complete bool }

// door is one way to ask a router for a word.
type door struct {
	name string
	ask  func(ctx context.Context, word string) (answer, error)
}

func (c *Canary) allDoors() []door {
	return []door{
		{"grpc", c.askGRPC},
		{"json", func(ctx context.Context, word string) (answer, error) {
			body := fmt.Sprintf(`{"query":%q,"options":{"maxFiles":1}}`, word)
			return c.askHTTP(ctx, http.MethodPost, "/api/v1/search?timeout="+deadline.String(), body, `"complete":true`)
		}},
		{"zoekt", func(ctx context.Context, word string) (answer, error) {
			body := fmt.Sprintf(`{"Q":%q,"Opts":{"MaxWallTime":%d,"MaxDocDisplayCount":1}}`, word, deadline)
			return c.askHTTP(ctx, http.MethodPost, "/api/search", body, `"Complete":true`)
		}},
		{"page", func(ctx context.Context, word string) (answer, error) {
			return c.askHTTP(ctx, http.MethodGet, "/?q="+word, "", `class="complete"`)
		}},
	}
}

func (c *Canary) askGRPC(ctx context.Context, word string) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	got, err := c.search.Search(ctx, &searchv1.SearchRequest{Query: word, Options: &searchv1.SearchOptions{MaxFiles: 1}})
	return answer{len(got.GetFiles()) > 0, got.GetCoverage().GetComplete()}, err
}

// askHTTP asks by HTTP. An answer that found the word names its file, which no question does. A complete one has the
// text complete. Anything but the status 200 is an error.
func (c *Canary) askHTTP(ctx context.Context, method, path, body, complete string) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.httpURL+path, strings.NewReader(body))
	if err != nil {
		return answer{}, fmt.Errorf("asking the router: %w", err)
	}
	token, err := c.token.GetRequestMetadata(ctx)
	if err != nil {
		return answer{}, err
	}
	for name, value := range token {
		req.Header.Set(name, value)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.http.Do(req)
	if err != nil {
		return answer{}, fmt.Errorf("asking the router: %w", err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %.200q", resp.Status, text)
	}
	return answer{bytes.Contains(text, []byte(needlePath)), bytes.Contains(text, []byte(complete))}, err
}

// tokenFile shows the token in a file with each call, and reads the file each time. If it is empty, there is none.
// Validate decided whether the token may be sent in plain text.
type tokenFile string

// GetRequestMetadata implements credentials.PerRPCCredentials.
func (f tokenFile) GetRequestMetadata(ctx context.Context, _ ...string) (map[string]string, error) {
	if f == "" {
		return nil, nil
	}
	text, err := access.ReadText(string(f))
	if err != nil {
		return nil, err
	}
	return access.Exposed{Text: text}.GetRequestMetadata(ctx)
}

// RequireTransportSecurity implements credentials.PerRPCCredentials.
func (tokenFile) RequireTransportSecurity() bool { return false }
