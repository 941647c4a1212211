package metrics_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/trawl-search/trawl/tools/metrics"
)

const (
	root     = "../.."
	chart    = "../../charts/trawl"
	interval = 15 * time.Second
	minutes  = 30
)

// lived has the metrics of a Trawl that has worked, as if they had been scraped every interval for
// half an hour until end.
type lived struct {
	store  *metrics.Store
	series []labels.Labels
	end    time.Time
}

// live runs Trawl, has it index and search, and stops it.
func live(t *testing.T) *lived {
	t.Helper()
	store, err := metrics.OpenStore(t.TempDir())
	must(t, err)
	t.Cleanup(func() { must(t, store.Close()) })
	roles, canary := work(t)
	l := &lived{store: store, end: time.Now().Truncate(interval)}
	for at := l.end.Add(-minutes * time.Minute); !at.After(l.end); at = at.Add(interval) {
		half := 1
		if at.Before(l.end.Add(-minutes * time.Minute / 2)) {
			half = 0
		}
		must(t, store.Add(t.Context(), roles[half], at, "trawl-0"))
		must(t, store.Add(t.Context(), canary[half], at, "canary-0"))
	}
	matrix, err := store.Range(t.Context(), `{__name__=~".+"}`, l.end, l.end, interval)
	must(t, err)
	for _, s := range matrix {
		l.series = append(l.series, s.Metric)
	}
	return l
}

// work returns the metrics of all roles and of a canary, each before any work and afterwards.
func work(t *testing.T) (roles, canary [2][]byte) {
	t.Helper()
	address := freeAddress(t)
	trawl, err := metrics.Start(t.Context(), root, t.TempDir(), address)
	must(t, err)
	defer func() { must(t, trawl.Stop()) }()
	repo := t.TempDir()
	must(t, metrics.Repository(t.Context(), repo, map[string]string{"a.go": "package a // needle\n", "b.txt": "needle\n"}))
	roles[0], err = metrics.Scrape(t.Context(), trawl.Metrics)
	must(t, err)
	must(t, trawl.Run(t.Context(), "index", repo))
	for range 3 {
		must(t, trawl.Run(t.Context(), "search", "needle"))
	}
	roles[1] = scrape(t, trawl, settled)
	watch, err := trawl.StartCanary(address)
	must(t, err)
	defer func() { must(t, watch.Stop()) }()
	canary[0], err = metrics.Scrape(t.Context(), watch.Metrics)
	must(t, err)
	canary[1] = scrape(t, watch, allFound)
	return roles, canary
}

// scrape returns the metrics once done accepts them.
func scrape(t *testing.T, trawl *metrics.Trawl, done func(page []byte) bool) (page []byte) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	for !done(page) {
		time.Sleep(100 * time.Millisecond)
		var err error
		page, err = metrics.Scrape(ctx, trawl.Metrics)
		must(t, err)
	}
	return page
}

// freeAddress returns an address that nothing listens at.
func freeAddress(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer ln.Close()
	return ln.Addr().String()
}

var found = regexp.MustCompile(`(?m)^trawl_canary_freshness_seconds_count\{.*\} [1-9]`)

// allFound reports whether the canary found a push by all four doors.
func allFound(page []byte) bool { return len(found.FindAll(page, -1)) == 4 }

// settled reports whether the indexer has reconciled and collected since it published.
func settled(page []byte) bool {
	return strings.Contains(string(page), `trawl_indexer_repos{component="indexer",state="published"} 1`) &&
		strings.Contains(string(page), `trawl_gc_objects{component="indexer",state="kept"} 2`)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestSeriesExist: Trawl exports every metric that dashboards and alerts read, with the label
// values that they name. Every panel shows something, under names that its series have, and no
// alert fires at a healthy Trawl.
func TestSeriesExist(t *testing.T) {
	l := live(t)
	boards, err := metrics.Dashboards(filepath.Join(chart, "dashboards"))
	must(t, err)
	for _, board := range boards {
		for _, panel := range board.Panels {
			for _, target := range panel.Targets {
				what := board.Name + ", " + panel.Title
				l.check(t, what, target.Query(5*time.Minute))
				l.draw(t, what, target)
			}
		}
	}
	alerts, err := metrics.Alerts(filepath.Join(chart, "alerts", "alerts.yaml"))
	must(t, err)
	for _, alert := range alerts {
		l.check(t, alert.Alert, alert.Expr)
		firing, err := l.store.Range(t.Context(), alert.Expr, l.end, l.end, interval)
		if err != nil || len(firing) != 0 {
			t.Errorf("%s fires at a Trawl that is well: %v, %v", alert.Alert, firing, err)
		}
	}
}

// check checks the selectors of a query against the series.
func (l *lived) check(t *testing.T, what, query string) {
	t.Helper()
	selectors, err := metrics.Selectors(query)
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	for _, s := range selectors {
		for _, alternative := range alternatives(s) {
			if !slices.ContainsFunc(l.series, func(have labels.Labels) bool { return matches(have, alternative) }) {
				t.Errorf("%s reads %v, which nothing exports", what, alternative)
			}
		}
	}
}

var words = regexp.MustCompile(`^\w+(\|\w+)+$`)

// alternatives returns the matchers of a selector. Each word that a label may have gets its own
// set, so that each word must exist.
func alternatives(s *parser.VectorSelector) (sets [][]*labels.Matcher) {
	sets = [][]*labels.Matcher{nil}
	for _, m := range s.LabelMatchers {
		var next [][]*labels.Matcher
		for _, set := range sets {
			if m.Type != labels.MatchRegexp || !words.MatchString(m.Value) {
				next = append(next, append(slices.Clone(set), m))
				continue
			}
			for word := range strings.SplitSeq(m.Value, "|") {
				next = append(next, append(slices.Clone(set), labels.MustNewMatcher(labels.MatchEqual, m.Name, word)))
			}
		}
		sets = next
	}
	return sets
}

func matches(have labels.Labels, want []*labels.Matcher) bool {
	return !slices.ContainsFunc(want, func(m *labels.Matcher) bool {
		// A label that the series does not have is a mistake, even if any value would match.
		return !m.Matches(have.Get(m.Name)) || !have.Has(m.Name)
	})
}

var legendLabel = regexp.MustCompile(`\{\{(\w+)\}\}`)

// draw evaluates a query over the lifetime. Only a query that filters by a value may return
// nothing.
func (l *lived) draw(t *testing.T, what string, target metrics.Target) {
	t.Helper()
	matrix, err := l.store.Range(t.Context(), target.Query(5*time.Minute), l.end.Add(-minutes*time.Minute), l.end, time.Minute)
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	if len(matrix) == 0 && !strings.Contains(target.Expr, "> 0") {
		t.Errorf("%s shows nothing for %s", what, target.Expr)
	}
	for _, s := range matrix {
		for _, label := range legendLabel.FindAllStringSubmatch(target.LegendFormat, -1) {
			if !s.Metric.Has(label[1]) {
				t.Errorf("%s: the legend %q names a label that %v lacks", what, target.LegendFormat, s.Metric)
			}
		}
	}
}

// TestAlertsAreDrawn: every metric that an alert reads is on a dashboard.
func TestAlertsAreDrawn(t *testing.T) {
	boards, err := metrics.Dashboards(filepath.Join(chart, "dashboards"))
	must(t, err)
	alerts, err := metrics.Alerts(filepath.Join(chart, "alerts", "alerts.yaml"))
	must(t, err)
	parts := strings.NewReplacer("_bucket", "", "_count", "", "_sum", "") // of a histogram
	namesOf := func(query string) (names []string) {
		selectors, err := metrics.Selectors(query)
		must(t, err)
		for _, s := range selectors {
			names = append(names, parts.Replace(s.Name))
		}
		return names
	}
	drawn := map[string]bool{}
	for _, board := range boards {
		for _, panel := range board.Panels {
			for _, target := range panel.Targets {
				for _, name := range namesOf(target.Query(5 * time.Minute)) {
					drawn[name] = true
				}
			}
		}
	}
	for _, alert := range alerts {
		for _, name := range namesOf(alert.Expr) {
			if !drawn[name] {
				t.Errorf("%s reads %s, which no dashboard shows", alert.Alert, name)
			}
		}
	}
}

// TestDashboards: each dashboard has its own identity, uses its data source and namespace, has
// units, fits the grid, and links to the runbook.
func TestDashboards(t *testing.T) {
	boards, err := metrics.Dashboards(filepath.Join(chart, "dashboards"))
	must(t, err)
	anchors := anchorsOf(t, filepath.Join(root, "docs", "runbook.md"))
	seen := map[string]bool{}
	for _, board := range boards {
		if board.UID == "" || seen[board.UID] || board.Title == "" {
			t.Errorf("%s has the id %q and the title %q", board.Name, board.UID, board.Title)
		}
		seen[board.UID] = true
		var variables []string
		for _, v := range board.Templating.List {
			variables = append(variables, v.Name+" "+v.Type)
		}
		if fmt.Sprint(variables) != "[datasource datasource namespace query]" {
			t.Errorf("%s has the variables %v", board.Name, variables)
		}
		if !slices.ContainsFunc(board.Links, func(l metrics.Link) bool { return l.URL == runbook }) {
			t.Errorf("%s does not lead to the runbook", board.Name)
		}
		for _, p := range board.Panels {
			if p.Title == "" || p.FieldConfig.Defaults.Unit == "" || p.GridPos.W < 1 || p.GridPos.H < 1 || p.GridPos.X+p.GridPos.W > 24 {
				t.Errorf("%s, %q: unit %q at %v", board.Name, p.Title, p.FieldConfig.Defaults.Unit, p.GridPos)
			}
			for _, link := range p.Links {
				if anchor, ok := strings.CutPrefix(link.URL, runbook+"#"); !ok || !anchors[anchor] {
					t.Errorf("%s, %q leads to %s, where nothing is", board.Name, p.Title, link.URL)
				}
			}
			for _, target := range p.Targets {
				if !strings.Contains(target.Expr, `namespace=~"$namespace"`) {
					t.Errorf("%s, %q is about all namespaces: %s", board.Name, p.Title, target.Expr)
				}
			}
		}
	}
}

const runbook = "https://github.com/trawl-search/trawl/blob/main/docs/runbook.md"

// anchorsOf returns the anchors that GitHub gives to the headings of a page.
func anchorsOf(t *testing.T, page string) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(page)
	must(t, err)
	anchors := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(string(text), -1) {
		plain := regexp.MustCompile(`[^\p{L}\p{N}\- _]`).ReplaceAllString(strings.ToLower(m[1]), "")
		anchors[strings.ReplaceAll(plain, " ", "-")] = true
	}
	return anchors
}
