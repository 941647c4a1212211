package cli

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/timestamppb"

	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// TestSourcesAreReadBeforeAnyCall: an error in a file is an error of usage.
func TestSourcesAreReadBeforeAnyCall(t *testing.T) {
	file := filepath.Join(t.TempDir(), "s.yaml")
	if err := os.WriteFile(file, []byte("sources:\n  - name: x\n    knd: git\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"line 3: field knd is not known": {"-f", file}, "name it with -f FILE": nil, "no such file": {"-f", file + "x"},
	} {
		exit, _, errs := run(t, nil, append([]string{"sources", "apply"}, args...)...)
		if exit != 2 || !strings.Contains(errs, want) {
			t.Errorf("%q: exit %d: %s", args, exit, errs)
		}
	}
}

func TestPrintSources(t *testing.T) {
	at := timestamppb.New(time.Date(2026, 11, 22, 1, 2, 3, 0, time.UTC))
	spec := func(name string) *ingestv1.Source { return &ingestv1.Source{Name: name, Kind: "github"} }
	list := []*ingestv1.SourceStatus{
		{Source: spec("bad"), Report: &ingestv1.SourceReport{Reason: "HTTP 500\x1b[2J", Failures: 3, Repos: 7, LookedAt: at, NextAt: at}},
		{Source: spec("good"), Report: &ingestv1.SourceReport{Repos: 5, Leaving: 2, Foreign: 1, LookedAt: at, SucceededAt: at, NextAt: at}, Stored: true},
		{Source: spec("new")},
		{Source: spec("old"), Removed: true, Report: &ingestv1.SourceReport{LookedAt: at}},
	}
	var out strings.Builder
	if err := printSources(&out, list); err != nil {
		t.Fatal(err)
	}
	const want = `NAME  STATE    KIND    REPOS  LEAVING  FOREIGN  REFUSED  LAST SUCCESS          NEXT LOOK             IN BUCKET
bad   failing  github  7      0        0        0        -                     2026-11-22T01:02:03Z  no
good  ok       github  5      2        1        0        2026-11-22T01:02:03Z  2026-11-22T01:02:03Z  yes
new   new      github  0      0        0        0        -                     -                     no
old   removed  github  0      0        0        0        -                     -                     no
bad: HTTP 500`
	if got := out.String(); !strings.HasPrefix(got, want) || strings.Contains(got, "\x1b") || !strings.Contains(got, "failed 3 times, next try at 2026-11-22T01:02:03Z") {
		t.Errorf("printed\n%s", got)
	}
	out.Reset()
	if err := printMessages(&out, "sources", list[:1]...); err != nil || !strings.HasPrefix(out.String(), "{") || strings.Count(out.String(), "\n") != 1 {
		t.Errorf("%s, %v", out.String(), err)
	}
}

// looked is a service with one source whose repos make progress at each request.
type looked struct {
	ingestv1.UnimplementedSourceServiceServer

	asked, repos uint64
	report       *ingestv1.SourceReport
}

func (l *looked) ApplySources(_ context.Context, req *ingestv1.ApplySourcesRequest) (*ingestv1.ApplySourcesResponse, error) {
	return &ingestv1.ApplySourcesResponse{Added: []string{req.GetSources()[0].GetName()}}, nil
}

func (l *looked) GetSource(_ context.Context, req *ingestv1.GetSourceRequest) (*ingestv1.GetSourceResponse, error) {
	l.asked++
	resp := &ingestv1.GetSourceResponse{Status: &ingestv1.SourceStatus{Source: &ingestv1.Source{Name: req.GetName()}, AppliedAt: timestamppb.New(time.Unix(100, 0))}}
	if l.asked > 1 { // the first look is not over at once
		resp.Status.Report, resp.Repos, resp.Published, resp.Failed = l.report, l.repos, l.repos-1, 1
	}
	return resp, nil
}

// TestWaitForSources: the wait ends when the sources were looked at and all repos are published or
// failed.
func TestWaitForSources(t *testing.T) {
	file := filepath.Join(t.TempDir(), "s.yaml")
	if err := os.WriteFile(file, []byte("sources:\n  - {name: x, kind: github, owner: o}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, c := range map[string]struct {
		report *ingestv1.SourceReport
		exit   int
	}{
		"1 source: 1 added, 0 changed, 0 removed\n5 repositories: 4 searchable as they were last asked for, 1 failed, 0 under way\n": {&ingestv1.SourceReport{LookedAt: timestamppb.New(time.Unix(101, 0))}, 0},
		"x: HTTP 500": {&ingestv1.SourceReport{LookedAt: timestamppb.New(time.Unix(101, 0)), Failures: 1, Reason: "HTTP 500"}, 1},
	} {
		l := &looked{repos: 5, report: c.report}
		srv := grpc.NewServer()
		ingestv1.RegisterSourceServiceServer(srv, l)
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() { _ = srv.Serve(listener) }()
		exit, out, errs := run(t, []string{"TRAWL_ADDR=" + listener.Addr().String()}, "sources", "apply", "-f", file, "--wait")
		srv.Stop()
		if exit != c.exit || !strings.Contains(out+errs, want) || l.asked != 2 {
			t.Errorf("exit %d after %d questions: %s%s", exit, l.asked, out, errs)
		}
	}
}
