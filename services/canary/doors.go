package canary

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"google.golang.org/grpc/metadata"

	"github.com/trawl-search/trawl/internal/access"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// door is one way to ask a router for a word. The path and the body have WORD in its place, and a complete answer has the
// text complete. Without a method the router is called over gRPC.
type door struct{ name, method, path, body, complete string }

var doors = []door{
	{name: "grpc"},
	{"json", http.MethodPost, "/api/v1/search?timeout=5s", `{"query":"WORD","options":{"maxFiles":10}}`, `"complete":true`},
	{"zoekt", http.MethodPost, "/api/search", `{"Q":"WORD","Opts":{"MaxWallTime":5000000000,"MaxDocDisplayCount":10}}`, `"Complete":true`},
	{"page", http.MethodGet, "/?q=WORD", "", `class="complete"`},
}

// look asks for a word by a door. It reports whether the answer has it, and whether the answer is complete.
func (c *Canary) look(ctx context.Context, d door, word string) (found, complete bool, err error) {
	if d.method == "" {
		ctx, cancel := context.WithTimeout(ctx, deadline)
		defer cancel()
		got, err := searchv1.NewSearchServiceClient(c.conn).Search(ctx, &searchv1.SearchRequest{Query: word, Options: &searchv1.SearchOptions{MaxFiles: 10}})
		found := slices.ContainsFunc(got.GetFiles(), func(f *searchv1.FileMatch) bool { return string(f.Path) == needlePath })
		return found, got.GetCoverage().GetComplete(), err
	}
	fill := strings.NewReplacer("WORD", word)
	req, err := http.NewRequestWithContext(ctx, d.method, c.httpURL+fill.Replace(d.path), strings.NewReader(fill.Replace(d.body)))
	if err != nil {
		return false, false, fmt.Errorf("asking the router: %w", err)
	}
	sent, _ := metadata.FromOutgoingContext(ctx)
	req.Header = http.Header{"Authorization": sent.Get("authorization"), "Content-Type": {"application/json"}}
	resp, err := c.http.Do(req)
	if err != nil {
		return false, false, fmt.Errorf("asking the router: %w", err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %.200q", resp.Status, text)
	}
	// An answer that found the word names its file, which no question does, nor a file of somebody who has copied the word.
	return bytes.Contains(text, []byte(needlePath)), bytes.Contains(text, []byte(d.complete)), err
}

// authorized adds the token in the file, if there is one, as it is now. Validate decided whether it may go in plain text.
func (c *Canary) authorized(ctx context.Context) context.Context {
	if c.cfg.Router.TokenFile == "" {
		return ctx
	}
	token, err := access.ReadText(c.cfg.Router.TokenFile)
	if err != nil {
		c.log.ErrorContext(ctx, "the canary has no token", "error", err)
	}
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+string(token))
}

// metrics are what a canary measures, each by door.
type metrics struct {
	freshness, ratio *prometheus.HistogramVec
	answers          *prometheus.CounterVec
	behind           *prometheus.GaugeVec
}

func newMetrics(r prometheus.Registerer) metrics {
	with, byDoor := promauto.With(r), []string{"door"}
	m := metrics{
		freshness: with.NewHistogramVec(prometheus.HistogramOpts{
			Name: "trawl_canary_freshness_seconds", Help: "Time from a push of the canary until a door found it.", Buckets: []float64{.5, 1, 2, 3, 5, 7.5, 10, 15, 20, 30, 45, 60, 120, 300, 600},
		}, byDoor),
		answers: with.NewCounterVec(prometheus.CounterOpts{
			Name: "trawl_canary_answers_total", Help: "Answers to the canary: complete, incomplete, failed if there was none, or wrong if it showed a deleted repo.",
		}, []string{"door", "outcome"}),
		ratio: with.NewHistogramVec(prometheus.HistogramOpts{
			Name: "trawl_canary_deadline_ratio", Help: "Time of an answer to the canary, as a share of its deadline.", Buckets: []float64{.005, .01, .02, .05, .1, .25, .5, .75, 1, 1.05},
		}, byDoor),
		behind: with.NewGaugeVec(prometheus.GaugeOpts{Name: "trawl_canary_behind_seconds", Help: "Age of the canary's last push when the door last did not find it, else 0."}, byDoor),
	}
	for _, d := range doors { // so that increases are counted from the first
		for _, outcome := range []string{"complete", "incomplete", "failed", "wrong"} {
			m.answers.WithLabelValues(d.name, outcome)
		}
	}
	return m
}
