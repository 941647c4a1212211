package canary

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"google.golang.org/grpc/metadata"

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

// door is one way to ask a router.
type door struct {
	name string
	ask  func(ctx context.Context, word string) (answer, error)
}

func (c *Canary) allDoors() []door {
	return []door{{"grpc", c.askGRPC}, {"json", c.askJSON}, {"zoekt", c.askZoekt}, {"page", c.askPage}}
}

func (c *Canary) askGRPC(ctx context.Context, word string) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	ctx, err := c.asCaller(ctx)
	if err != nil {
		return answer{}, err
	}
	got, err := c.search.Search(ctx, &searchv1.SearchRequest{Query: word, Options: &searchv1.SearchOptions{MaxFiles: 1}})
	return answer{len(got.GetFiles()) > 0, got.GetCoverage().GetComplete()}, err
}

func (c *Canary) askJSON(ctx context.Context, word string) (answer, error) {
	var got struct {
		Files    []struct{ Repo string }
		Coverage struct{ Complete bool }
	}
	path := "/api/v1/search?timeout=" + deadline.String()
	err := c.fetchJSON(ctx, path, map[string]any{"query": word, "options": map[string]any{"maxFiles": 1}}, &got)
	return answer{len(got.Files) > 0, got.Coverage.Complete}, err
}

func (c *Canary) askZoekt(ctx context.Context, word string) (answer, error) {
	var got struct {
		Result struct {
			Files []struct{ Repository string }
			Trawl struct{ Complete bool }
		}
	}
	err := c.fetchJSON(ctx, "/api/search", map[string]any{"Q": word, "Opts": map[string]any{"MaxWallTime": deadline, "MaxDocDisplayCount": 1}}, &got)
	return answer{len(got.Result.Files) > 0, got.Result.Trawl.Complete}, err
}

// askPage looks for the links and words of the page that people see. The page repeats the query, but not the path.
func (c *Canary) askPage(ctx context.Context, word string) (answer, error) {
	page, err := c.fetch(ctx, http.MethodGet, "/?q="+url.QueryEscape(word), nil)
	return answer{bytes.Contains(page, []byte("/-/"+needlePath)), bytes.Contains(page, []byte(`class="complete"`))}, err
}

// fetchJSON sends a request and reads the answer into got.
func (c *Canary) fetchJSON(ctx context.Context, path string, request, got any) error {
	body, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("writing the question: %w", err)
	}
	text, err := c.fetch(ctx, http.MethodPost, path, body)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, got); err != nil {
		return fmt.Errorf("reading the answer of %s: %w", path, err)
	}
	return nil
}

// fetch returns the body of an answer with the status 200.
func (c *Canary) fetch(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.httpURL+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("asking the router: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	token, err := c.token()
	if err != nil {
		return nil, err
	}
	if token != "" {
		req.Header.Set("Authorization", token)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("asking the router: %w", err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %.200q", resp.Status, text)
	}
	return text, err
}

// asCaller adds the token to the metadata of a call.
func (c *Canary) asCaller(ctx context.Context) (context.Context, error) {
	token, err := c.token()
	if err != nil || token == "" {
		return ctx, err
	}
	return metadata.AppendToOutgoingContext(ctx, "authorization", token), nil
}

// token returns the value of the header Authorization; empty: the canary has no token.
func (c *Canary) token() (string, error) {
	if c.cfg.Router.TokenFile == "" {
		return "", nil
	}
	text, err := access.ReadText(c.cfg.Router.TokenFile)
	if err != nil {
		return "", err
	}
	return "Bearer " + string(text), nil
}
