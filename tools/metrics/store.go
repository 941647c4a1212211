package metrics

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/tsdb"
)

// Store is a Prometheus database that answers queries.
type Store struct{ *tsdb.DB }

// engine evaluates all queries.
var engine = promql.NewEngine(promql.EngineOpts{MaxSamples: 1e7, Timeout: time.Minute, EnableAtModifier: true, EnableNegativeOffset: true})

// OpenStore opens a new store in a folder. The caller closes it.
func OpenStore(dir string) (*Store, error) {
	db, err := tsdb.Open(dir, slog.New(slog.DiscardHandler), nil, tsdb.DefaultOptions(), nil)
	if err != nil {
		return nil, fmt.Errorf("open a database: %w", err)
	}
	return &Store{db}, nil
}

// Scrape reads the metrics of a process.
func Scrape(ctx context.Context, url string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("scrape %s: %w", url, err)
	}
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %s", resp.Status)
	}
	if err != nil {
		return nil, fmt.Errorf("scrape %s: %w", url, err)
	}
	return page, nil
}

// Add stores a page of metrics at a time, with the labels that Prometheus would add for a pod.
func (s *Store) Add(ctx context.Context, page []byte, at time.Time, pod string) error {
	p := textparse.NewPromParser(page, labels.NewSymbolTable(), false)
	app := s.Appender(ctx)
	for {
		entry, err := p.Next()
		if errors.Is(err, io.EOF) {
			return app.Commit()
		}
		if err != nil {
			return fmt.Errorf("read metrics: %w", err)
		}
		if entry != textparse.EntrySeries {
			continue
		}
		var own labels.Labels
		p.Labels(&own)
		_, _, value := p.Series()
		b := labels.NewBuilder(own)
		b.Set("namespace", "trawl").Set("pod", pod)
		if _, err := app.Append(0, b.Labels(), at.UnixMilli(), value); err != nil {
			return fmt.Errorf("store %s: %w", own, err)
		}
	}
}

// Range evaluates a query at every step of a period.
func (s *Store) Range(ctx context.Context, query string, from, to time.Time, step time.Duration) (promql.Matrix, error) {
	q, err := engine.NewRangeQuery(ctx, s.DB, nil, query, from, to, step)
	if err != nil {
		return nil, err
	}
	result := q.Exec(ctx)
	return result.Matrix()
}

// Fires returns the first sample at which an alert has held for a series as long as it requires,
// evaluated at every step of a period; nil if it does not fire.
func (s *Store) Fires(ctx context.Context, alert Alert, from, to time.Time, step time.Duration) (*promql.Sample, error) {
	matrix, err := s.Range(ctx, alert.Expr, from, to, step)
	if err != nil {
		return nil, fmt.Errorf("evaluate %s: %w", alert.Alert, err)
	}
	var first *promql.Sample
	for _, series := range matrix {
		began := series.Floats[0].T
		for i, p := range series.Floats {
			if i > 0 && p.T-series.Floats[i-1].T > step.Milliseconds() {
				began = p.T
			}
			if p.T-began >= time.Duration(alert.For).Milliseconds() {
				if first == nil || p.T < first.T {
					first = &promql.Sample{T: p.T, F: p.F, Metric: series.Metric}
				}
				break
			}
		}
	}
	return first, nil
}

// Selectors returns the series selectors of a query.
func Selectors(query string) ([]*parser.VectorSelector, error) {
	expr, err := parser.ParseExpr(query)
	if err != nil {
		return nil, err
	}
	var found []*parser.VectorSelector
	parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
		if v, ok := n.(*parser.VectorSelector); ok {
			found = append(found, v)
		}
		return nil
	})
	return found, nil
}
