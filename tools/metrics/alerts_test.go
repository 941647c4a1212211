package metrics_test

import (
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/template"

	"github.com/trawl-search/trawl/tools/metrics"
)

// trouble is the test case of an alert: series at which it must fire, and some at which it must
// not, in the notation of promtool, with one value per minute for four hours.
type trouble struct{ bad, good string }

const (
	queries = `trawl_router_query_seconds_count{namespace="n",method="search",outcome="complete"} 0+1000x240
	`
	// Mistakes of callers are not our errors, however often they happen.
	wrongly = queries + `trawl_router_query_seconds_count{namespace="n",method="search",outcome="InvalidArgument"} 0+1000x240
	trawl_router_query_seconds_count{namespace="n",method="search",outcome="incomplete"} 0+0x240`
)

var troubles = map[string]trouble{
	"TrawlSearchErrorBudgetBurns": {queries + `trawl_router_query_seconds_count{namespace="n",outcome="incomplete"} 0+20x240`, wrongly},
	"TrawlSearchErrorBudgetLeaks": {queries + `trawl_router_query_seconds_count{namespace="n",outcome="Unavailable"} 0+7x240`, wrongly},
	"TrawlSearchesSlow": {
		`trawl_router_query_seconds_bucket{namespace="n",method="search",le="1"} 0+98x240
		trawl_router_query_seconds_bucket{namespace="n",method="search",le="10"} 0+100x240
		trawl_router_query_seconds_bucket{namespace="n",method="search",le="+Inf"} 0+100x240`,
		`trawl_router_query_seconds_bucket{namespace="n",method="search",le="1"} 0+100x240
		trawl_router_query_seconds_bucket{namespace="n",method="search",le="+Inf"} 0+100x240
		trawl_router_query_seconds_bucket{namespace="n",method="stream_search",le="+Inf"} 0+100x240`,
	},
	"TrawlDeadlinesMissed": {
		`trawl_router_query_deadline_ratio_bucket{namespace="n",method="search",le="1.02"} 0+98x240
		trawl_router_query_deadline_ratio_count{namespace="n",method="search"} 0+100x240`,
		`trawl_router_query_deadline_ratio_bucket{namespace="n",method="search",le="1.02"} 0+995x240
		trawl_router_query_deadline_ratio_count{namespace="n",method="search"} 0+1000x240
		trawl_router_query_deadline_ratio_bucket{namespace="n",method="stream_search",le="1.02"} 0x240
		trawl_router_query_deadline_ratio_count{namespace="n",method="stream_search"} 0+1000x240`,
	},
	"TrawlQueriesRefused": {
		queries + `trawl_router_shed_total{namespace="n",class="batch"} 0+20x240`,
		queries + `trawl_router_shed_total{namespace="n",class="batch"} 0+1x240`,
	},
	"TrawlQueryQuarantined": {`trawl_router_quarantined_total{namespace="n"} 0x100 1x140`, `trawl_router_quarantined_total{namespace="n"} 5x240`},
	"TrawlShardsUnreachable": {
		`trawl_router_shards_total{namespace="n",outcome="no_searcher"} 0+1x240`,
		`trawl_router_shards_total{namespace="n",outcome="deadline"} 0+1x240
		trawl_router_shards_total{namespace="n",outcome="no_searcher"} 7x240`,
	},
	"TrawlSearcherBreakerOpen": {
		`trawl_router_searcher_breaker{namespace="n",searcher="s"} 1x240`,
		`trawl_router_searcher_breaker{namespace="n",searcher="s"} 0 1 2 0x240`,
	},
	"TrawlEtcdUnreachable": {
		`trawl_router_etcd_silence_seconds{namespace="n",pod="a"} 0x100 0+60x140
		trawl_router_etcd_silence_seconds{namespace="n",pod="b"} 0x240`,
		`trawl_router_etcd_silence_seconds{namespace="n",pod="a"} 1 0 6 12 1x236`,
	},
	"TrawlEtcdNearlyFull": {
		`trawl_router_etcd_used_bytes{namespace="n",pod="p"} 60x100 75x140
		trawl_router_etcd_quota_bytes{namespace="n",pod="p"} 100x240`,
		`trawl_router_etcd_used_bytes{namespace="n",pod="p"} 65x240
		trawl_router_etcd_quota_bytes{namespace="n",pod="p"} 100x240
		trawl_router_etcd_used_bytes{namespace="n",pod="old"} 75x240
		trawl_router_etcd_quota_bytes{namespace="n",pod="old"} 0x240`,
	},
	"TrawlEtcdWentBack": {`trawl_router_etcd_went_back_total{namespace="n",pod="p"} 0x100 1x140`, `trawl_router_etcd_went_back_total{namespace="n",pod="p"} 1x240`},
	"TrawlShardCorrupt": {`trawl_searcher_shards_corrupt_total{namespace="n",pod="p"} 0x100 1x140`, `trawl_searcher_shards_corrupt_total{namespace="n",pod="p"} 1x240`},
	"TrawlShardLoadsFail": {
		`trawl_searcher_shard_load_seconds_count{namespace="n",outcome="failed"} 0+1x240
		trawl_searcher_shard_load_seconds_count{namespace="n",outcome="loaded"} 0+1x240`,
		`trawl_searcher_shard_load_seconds_count{namespace="n",outcome="failed"} 3x240
		trawl_searcher_shard_load_seconds_count{namespace="n",outcome="loaded"} 0+1x240`,
	},
	"TrawlSearcherReadsBucket": {
		`trawl_searcher_shards_asked_total{namespace="n",from="ranges"} 0+2x240
		trawl_searcher_shards_asked_total{namespace="n",from="file"} 0+1x240`,
		`trawl_searcher_shards_asked_total{namespace="n",from="ranges"} 0+1x240
		trawl_searcher_shards_asked_total{namespace="n",from="file"} 0+2x240`,
	},
	"TrawlIndexingBehind": {
		`trawl_indexer_oldest_request_seconds{namespace="n",pod="leads"} 0+60x240
		trawl_indexer_oldest_request_seconds{namespace="n",pod="other"} 0x240`,
		`trawl_indexer_oldest_request_seconds{namespace="n",pod="leads"} 600x240`,
	},
	"TrawlPushesSlow": {
		`trawl_indexer_request_to_published_seconds_bucket{namespace="n",repo="known",le="600"} 0+90x240
		trawl_indexer_request_to_published_seconds_bucket{namespace="n",repo="known",le="1800"} 0+100x240
		trawl_indexer_request_to_published_seconds_bucket{namespace="n",repo="known",le="+Inf"} 0+100x240`,
		`trawl_indexer_request_to_published_seconds_bucket{namespace="n",repo="known",le="600"} 0+100x240
		trawl_indexer_request_to_published_seconds_bucket{namespace="n",repo="known",le="+Inf"} 0+100x240
		trawl_indexer_request_to_published_seconds_bucket{namespace="n",repo="new",le="600"} 0+0x240
		trawl_indexer_request_to_published_seconds_bucket{namespace="n",repo="new",le="+Inf"} 0+100x240`,
	},
	"TrawlReposStale": {
		`trawl_indexer_repo_lag_seconds_bucket{namespace="n",pod="a",le="3600"} 980x240
		trawl_indexer_repo_lag_seconds_count{namespace="n",pod="a"} 1000x240
		trawl_indexer_repo_lag_seconds_bucket{namespace="n",pod="b",le="3600"} 0x240
		trawl_indexer_repo_lag_seconds_count{namespace="n",pod="b"} 0x240`,
		`trawl_indexer_repo_lag_seconds_bucket{namespace="n",pod="a",le="3600"} 995x240
		trawl_indexer_repo_lag_seconds_count{namespace="n",pod="a"} 1000x240`,
	},
	"TrawlSourceFails": {
		`trawl_sources{namespace="n",pod="a",state="failing"} 0x20 1x220`,
		`trawl_sources{namespace="n",pod="a",state="failing"} 0x20 1x50 0x170
		trawl_sources{namespace="n",pod="a",state="ok"} 5x240`,
	},
	"TrawlSourceEmpties": {
		`trawl_sources_leaving{namespace="n",pod="leads"} 0x20 1x220
		trawl_sources_leaving{namespace="n",pod="other"} 0x240`,
		`trawl_sources_leaving{namespace="n",pod="leads"} 0x20 1x10 0x210`,
	},
	"TrawlWebhooksRefused": {
		`trawl_router_webhooks_total{namespace="n",outcome="forged"} 0+2x240
		trawl_router_webhooks_total{namespace="n",outcome="queued"} 0+8x240`,
		`trawl_router_webhooks_total{namespace="n",outcome="failed"} 0+1x240
		trawl_router_webhooks_total{namespace="n",outcome="current"} 0+99x240`,
	},
	"TrawlJobsFail": {
		`trawl_indexer_jobs_total{namespace="n",outcome="failed"} 0+2x240
		trawl_indexer_jobs_total{namespace="n",outcome="published"} 0+1x240`,
		`trawl_indexer_jobs_total{namespace="n",outcome="postponed"} 0+9x240
		trawl_indexer_jobs_total{namespace="n",outcome="failed"} 0+1x240
		trawl_indexer_jobs_total{namespace="n",outcome="published"} 0+1x240`,
	},
	"TrawlJobsGivenUp": {`trawl_queue_dead_jobs{namespace="n",pod="p"} 0x100 12x140`, `trawl_queue_dead_jobs{namespace="n",pod="p"} 500x240`},
	"TrawlNoLeader": {
		`trawl_indexer_leader{namespace="n",pod="a"} 0x240`,
		`trawl_indexer_leader{namespace="n",pod="a"} 0x240
		trawl_indexer_leader{namespace="n",pod="b"} 1x240`,
	},
	"TrawlBucketErrors": {
		`trawl_bucket_calls_total{namespace="n",op="get",outcome="error"} 0+1x240
		trawl_bucket_calls_total{namespace="n",op="get",outcome="ok"} 0+9x240`,
		`trawl_bucket_calls_total{namespace="n",op="get",outcome="not_found"} 0+9x240
		trawl_bucket_calls_total{namespace="n",op="get",outcome="error"} 3x240`,
	},
	"TrawlGarbageNotCollected": {
		`trawl_gc_last_success_timestamp_seconds{namespace="n",pod="a"} 60x240`,
		`trawl_gc_last_success_timestamp_seconds{namespace="n",pod="a"} 0x240
		trawl_gc_last_success_timestamp_seconds{namespace="n",pod="b"} 0+60x240`,
	},
	"TrawlGarbageSpared": {`trawl_gc_spared_objects_total{namespace="n"} 0x100 1x140`, `trawl_gc_spared_objects_total{namespace="n"} 0x240`},
	"TrawlCompactionBehind": {
		`trawl_compaction_oldest_planned_seconds{namespace="n",pod="leads"} 0+600x240
		trawl_compaction_oldest_planned_seconds{namespace="n",pod="other"} 0x240`,
		`trawl_compaction_oldest_planned_seconds{namespace="n",pod="leads"} 3600x240`,
	},
	"TrawlRoleNotReady": {
		`trawl_server_condition{namespace="n",pod="p",component="router",condition="etcd"} 0x240`,
		`trawl_server_condition{namespace="n",pod="p",component="router",condition="etcd"} 0x5 1x235`,
	},
	"TrawlRoleGone": {
		`trawl_build_info{namespace="n",service="trawl-router",pod="p"} 1x100`,
		`trawl_build_info{namespace="n",service="trawl-router",pod="p"} 1x100
		trawl_build_info{namespace="n",service="trawl-router",pod="q"} _x90 1x150`,
	},
	"TrawlPanics": {
		`trawl_server_panics_total{namespace="n",pod="p"} 0x240
		trawl_searcher_shard_panics_total{namespace="n",pod="p"} 0x100 1x140`,
		`trawl_server_panics_total{namespace="n",pod="p"} 4x240`,
	},
	"TrawlCanaryPushNotFound": {
		`trawl_canary_behind_seconds{namespace="n",door="page"} 0x100 0+60x140
		trawl_canary_behind_seconds{namespace="n",door="grpc"} 0x240`,
		`trawl_canary_behind_seconds{namespace="n",door="page"} 0x100 90 0x50 3 150 0x87
		trawl_canary_behind_seconds{namespace="n",door="grpc"} 30x240`,
	},
	"TrawlCanaryAnswersBad": {
		`trawl_canary_answers_total{namespace="n",door="grpc",outcome="complete"} 0+80x240
		trawl_canary_answers_total{namespace="n",door="json",outcome="incomplete"} 0+3x240
		trawl_canary_answers_total{namespace="n",door="page",outcome="failed"} 0+3x240`,
		`trawl_canary_answers_total{namespace="n",door="grpc",outcome="complete"} 0+80x240
		trawl_canary_answers_total{namespace="n",door="json",outcome="incomplete"} 0+2x240
		trawl_canary_answers_total{namespace="n",door="page",outcome="failed"} 0+1x240
		trawl_canary_answers_total{namespace="n",door="grpc",outcome="wrong"} 7x240`,
	},
}

// TestAlertsFire: each alert fires at the trouble that it is about, and not at similar series.
func TestAlertsFire(t *testing.T) {
	alerts, err := metrics.Alerts(filepath.Join(chart, "alerts", "alerts.yaml"))
	must(t, err)
	var names []string
	for _, alert := range alerts {
		names = append(names, alert.Alert)
		t.Run(alert.Alert, func(t *testing.T) {
			c := troubles[alert.Alert]
			fired := firing(t, alert, c.bad)
			if fired == nil {
				t.Fatal("it does not fire")
			}
			tells(t, alert, *fired)
			if f := firing(t, alert, c.good); f != nil {
				t.Errorf("it fires without a reason: %v", f)
			}
		})
	}
	if slices.Sort(names); !slices.Equal(names, slices.Sorted(maps.Keys(troubles))) {
		t.Errorf("alerts %v, cases %v", names, slices.Sorted(maps.Keys(troubles)))
	}
}

// TestOneDeletedRepoIsEnough: a single answer with a repo that was deleted before makes the canary's alert fire.
func TestOneDeletedRepoIsEnough(t *testing.T) {
	alerts, err := metrics.Alerts(filepath.Join(chart, "alerts", "alerts.yaml"))
	must(t, err)
	at := slices.IndexFunc(alerts, func(a metrics.Alert) bool { return a.Alert == "TrawlCanaryAnswersBad" })
	if at < 0 || firing(t, alerts[at], `trawl_canary_answers_total{namespace="n",door="grpc",outcome="complete"} 0+80x240
		trawl_canary_answers_total{namespace="n",door="page",outcome="wrong"} 0x100 1x140`) == nil {
		t.Error("it does not fire")
	}
}

// TestOutagesAreSeenSoon: alerts about what callers notice immediately fire within two minutes,
// with scrapes every 15 seconds.
func TestOutagesAreSeenSoon(t *testing.T) {
	alerts, err := metrics.Alerts(filepath.Join(chart, "alerts", "alerts.yaml"))
	must(t, err)
	at := slices.IndexFunc(alerts, func(a metrics.Alert) bool { return a.Alert == "TrawlEtcdUnreachable" })
	if at < 0 || alerts[at].Labels["severity"] != "critical" {
		t.Fatal("there is no critical alert TrawlEtcdUnreachable")
	}
	const calm = 40 // scrapes, ten minutes
	storage := promqltest.LoadedStorage(t, "load 15s\n"+`trawl_router_etcd_silence_seconds{namespace="n",pod="a"} 1x39 0+15x40`)
	defer storage.Close()
	store := &metrics.Store{DB: storage.DB}
	lost := time.Unix(calm*15, 0)
	matrix, err := store.Range(t.Context(), alerts[at].Expr, time.Unix(0, 0), lost.Add(5*time.Minute), 15*time.Second)
	must(t, err)
	if len(matrix) != 1 {
		t.Fatalf("it fires of %d series", len(matrix))
	}
	pending := time.UnixMilli(matrix[0].Floats[0].T)
	if fires := pending.Add(time.Duration(alerts[at].For)).Sub(lost); pending.Before(lost) || fires > 2*time.Minute {
		t.Errorf("it fires %v after etcd went", fires)
	}
}

// firing returns a sample of the first series for which the alert held long enough.
func firing(t *testing.T, alert metrics.Alert, series string) *promql.Sample {
	t.Helper()
	storage := promqltest.LoadedStorage(t, "load 1m\n"+series)
	defer storage.Close()
	store := &metrics.Store{DB: storage.DB}
	sample, err := store.Fires(t.Context(), alert, time.Unix(0, 0), time.Unix(4*3600, 0), time.Minute)
	must(t, err)
	return sample
}

// tells checks the alert's texts against the sample at which it fired.
func tells(t *testing.T, alert metrics.Alert, s promql.Sample) {
	t.Helper()
	defs := "{{$labels := .Labels}}{{$value := .Value}}"
	data := template.AlertTemplateData(s.Metric.Map(), nil, "", s)
	for _, name := range []string{"summary", "description"} {
		text, err := template.NewTemplateExpander(t.Context(), defs+alert.Annotations[name], name, data, model.Time(s.T), nil, nil, []string{"missingkey=error"}).Expand()
		if err != nil || text == "" || strings.Contains(text, "NaN") || strings.Contains(text, "no value") {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
}

// TestAlertsLeadToTheRunbook: each alert has its section, and there are no other sections.
func TestAlertsLeadToTheRunbook(t *testing.T) {
	alerts, err := metrics.Alerts(filepath.Join(chart, "alerts", "alerts.yaml"))
	must(t, err)
	anchors := anchorsOf(t, filepath.Join(root, "docs", "runbook.md"))
	known := map[string]bool{}
	for _, a := range alerts {
		anchor := strings.ToLower(a.Alert)
		known[anchor] = true
		if a.Annotations["runbook_url"] != runbook+"#"+anchor || !anchors[anchor] {
			t.Errorf("%s leads to %q", a.Alert, a.Annotations["runbook_url"])
		}
		if s := a.Labels["severity"]; s != "critical" && s != "warning" {
			t.Errorf("%s has the severity %q", a.Alert, s)
		}
	}
	for anchor := range anchors {
		if regexp.MustCompile(`^trawl[a-z]+$`).MatchString(anchor) && !known[anchor] {
			t.Errorf("the runbook describes %s, which is not an alert", anchor)
		}
	}
}
