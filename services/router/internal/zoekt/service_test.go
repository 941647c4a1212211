package zoekt

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
	webserverv1 "github.com/trawl-search/trawl/proto/zoekt/webserver/v1"
)

// call is a gRPC call of a test. It keeps what the service sends.
type call struct {
	grpc.ServerStream
	ctx     context.Context //nolint:containedctx // that of the call
	trailer metadata.MD
	pieces  []*webserverv1.SearchResponse
}

func newCall(t *testing.T) *call {
	t.Helper()
	c := &call{}
	c.ctx = grpc.NewContextWithServerTransportStream(t.Context(), transport{c})
	return c
}

func (c *call) Method() string               { return "" }
func (c *call) SetTrailer(md metadata.MD)    { c.trailer = md }
func (c *call) Context() context.Context     { return c.ctx }
func (c *call) SetHeader(metadata.MD) error  { return nil }
func (c *call) SendHeader(metadata.MD) error { return nil }
func (c *call) Send(r *webserverv1.StreamSearchResponse) error {
	c.pieces = append(c.pieces, r.ResponseChunk)
	return nil
}

// transport is a call as gRPC's functions for contexts see it.
type transport struct{ *call }

func (t transport) SetTrailer(md metadata.MD) error { t.call.SetTrailer(md); return nil }

func (f *fake) service() *Service {
	return NewService(func(keep func(string, uint32) bool) Answers { f.keep = keep; return f }, testLimits)
}

// searchAs asks Search with the options, and returns the account as well.
func (f *fake) searchAs(t *testing.T, o *webserverv1.SearchOptions) (*webserverv1.SearchResponse, string) {
	t.Helper()
	c := newCall(t)
	resp, err := f.service().Search(c.ctx, &webserverv1.SearchRequest{Query: zoektQuery(t, `substring {pattern: "x"}`), Opts: o})
	if err != nil {
		t.Fatal(err)
	}
	return resp, strings.Join(c.trailer[accountKey], "")
}

// TestMessageOptions sets one option after the other on the same three files.
func TestMessageOptions(t *testing.T) {
	for _, c := range []struct {
		o    *webserverv1.SearchOptions
		want string
	}{
		{nil, "a:3 b:1 c:1 skipped 0"},
		{&webserverv1.SearchOptions{MaxDocDisplayCount: 2}, "a:3 b:1 skipped 0"},
		{&webserverv1.SearchOptions{MaxMatchDisplayCount: 2}, "a:2 skipped 0"},
		{&webserverv1.SearchOptions{TotalMaxMatchCount: 3}, "a:3 skipped 2"},
		{&webserverv1.SearchOptions{ShardRepoMaxMatchCount: 1}, "a:3 c:1 skipped 1"},
		{&webserverv1.SearchOptions{ShardMaxMatchCount: -1, ChunkMatches: true}, "a:3 b:1 c:1 skipped 0"},
		{&webserverv1.SearchOptions{FlushWallTime: durationpb.New(1)}, "a:3 b:1 c:1 skipped 0 [FlushWallTime]"},
		{&webserverv1.SearchOptions{UseBm25Scoring: true, Trace: true}, "a:3 b:1 c:1 skipped 0 [UseBM25Scoring Trace]"},
		{&webserverv1.SearchOptions{NumContextLines: 500}, "a:3 b:1 c:1 skipped 0 clamped [NumContextLines]"},
		{&webserverv1.SearchOptions{Whole: true}, "a=x|y|z|:3 b=x|:1 c=x|:1 skipped 0"},
	} {
		f := found(file("r", "a", "x\ny\nz\n"), file("r", "b", "x\n"), file("s", "c", "x\n"))
		f.files = map[string]string{"a": "x\ny\nz\n", "b": "x\n", "c": "x\n"}
		resp, account := f.searchAs(t, c.o)
		if got := tellMessage(resp, account); got != c.want {
			t.Errorf("%v: %s, want %s", c.o, got, c.want)
		}
		if req := f.searched[0]; req.Query != "" || req.Tree == nil || req.Options.Mode != searchv1.Mode_MODE_EXHAUSTIVE {
			t.Errorf("%v: asked %v", c.o, req)
		}
	}
}

func tellMessage(resp *webserverv1.SearchResponse, account string) string {
	var b strings.Builder
	for _, f := range resp.Files {
		n := 0
		for _, c := range f.ChunkMatches {
			n += len(c.Ranges)
		}
		for _, l := range f.LineMatches {
			n += len(l.LineFragments)
		}
		b.Write(f.FileName)
		if f.Content != nil {
			b.WriteString("=" + strings.ReplaceAll(string(f.Content), "\n", "|"))
		}
		fmt.Fprintf(&b, ":%d ", n)
	}
	fmt.Fprintf(&b, "skipped %d", resp.Stats.FilesSkipped)
	for key, word := range map[string]string{`"Clamped":[`: " clamped ", `"Ignored":[`: " "} {
		if _, list, ok := strings.Cut(account, key); ok {
			list, _, _ = strings.Cut(list, "]")
			b.WriteString(word + "[" + strings.ReplaceAll(strings.ReplaceAll(list, `"`, ""), ",", " ") + "]")
		}
	}
	return b.String()
}

// TestIncompleteMessages: what is missing shows in the statistics, since messages have no
// account of their own.
func TestIncompleteMessages(t *testing.T) {
	f := found(file("r", "a", "x\n"))
	f.search.Coverage = &searchv1.Coverage{Requested: 10, Searched: 4, Pruned: 3, Failed: 2, NotReached: 1}
	resp, account := f.searchAs(t, nil)
	if s := resp.Stats; s.Crashes != 2 || s.ShardsSkipped != 1 || s.ShardsScanned != 4 || s.ShardsSkippedFilter != 3 ||
		s.FlushReason != webserverv1.FlushReason_FLUSH_REASON_TIMER_EXPIRED || !strings.Contains(account, `"Complete":false`) {
		t.Errorf("%v, %s", s, account)
	}
	f = found(file("r", "a", "x\n"))
	f.search.Statistics.FilesMatched, f.search.NextPageToken, f.search.Cut = 5, []byte{1}, searchv1.CutReason_CUT_REASON_MAX_BYTES
	if resp, _ = f.searchAs(t, nil); resp.Stats.FilesSkipped != 4 || resp.Stats.FlushReason != webserverv1.FlushReason_FLUSH_REASON_MAX_SIZE {
		t.Errorf("files left out: %v", resp.Stats)
	}
	f = &fake{list: &searchv1.ListResponse{Coverage: &searchv1.Coverage{Requested: 9, Failed: 2, NotReached: 1, Searched: 6}}}
	list, err := f.service().List(newCall(t).ctx, &webserverv1.ListRequest{Query: zoektQuery(t, `const: true`)})
	if err != nil || list.Crashes != 3 {
		t.Errorf("a list: %v, %v", list, err)
	}
}

// TestFileNamesAreBytes: a path need not be UTF-8.
func TestFileNamesAreBytes(t *testing.T) {
	resp, _ := found(file("r", "a\xff", "x\n")).searchAs(t, &webserverv1.SearchOptions{ChunkMatches: true})
	f := resp.Files[0]
	if string(f.FileName) != "a\xff" || f.RepositoryId != testID("r") || f.Version != "c0" || f.Language != "Go" || f.ChunkMatches[0].BestLineMatch != 1 {
		t.Errorf("%v", f)
	}
	if _, err := proto.Marshal(resp); err != nil {
		t.Error(err)
	}
}

func TestListMessages(t *testing.T) {
	at := time.Unix(1_700_000_000, 0)
	f := &fake{list: &searchv1.ListResponse{Coverage: &searchv1.Coverage{Complete: true}, Repos: []*searchv1.RepoEntry{{
		Name: "host/one", Id: testID("host/one"), Url: "https://host/one", Documents: 3, Shards: 1, ContentBytes: 5, IndexBytes: 4, PublishedAt: timestamppb.New(at),
		Branches: []*searchv1.BranchEntry{{Name: "main", Commit: "c0"}},
	}}}}
	ask := func(field webserverv1.ListOptions_RepoListField) (*webserverv1.ListResponse, error) {
		return f.service().List(newCall(t).ctx, &webserverv1.ListRequest{Query: zoektQuery(t, `const: true`), Opts: &webserverv1.ListOptions{Field: field}})
	}
	for _, field := range []webserverv1.ListOptions_RepoListField{0, 1} {
		resp, err := ask(field)
		if err != nil {
			t.Fatal(err)
		}
		e := resp.Repos[0]
		if r := e.Repository; r.Id != testID("host/one") || r.Name != "host/one" || r.Url != "https://host/one" || r.Branches[0].Version != "c0" || len(resp.ReposMap) > 0 {
			t.Errorf("%v", resp)
		}
		if !e.IndexMetadata.IndexTime.AsTime().Equal(at) || resp.Stats.Repos != 1 || resp.Stats.Documents != 3 || e.Stats.ContentBytes != 5 {
			t.Errorf("%v", resp)
		}
	}
	resp, err := ask(3)
	if err != nil || len(resp.Repos) > 0 || resp.ReposMap[testID("host/one")].GetIndexTimeUnix() != at.Unix() || resp.ReposMap[testID("host/one")].Branches[0].Name != "main" {
		t.Errorf("%v, %v", resp, err)
	}
	if f.listed.Tree == nil || f.listed.Query != "" {
		t.Errorf("asked %v", f.listed)
	}
	if _, err := ask(2); status.Code(err) != codes.InvalidArgument {
		t.Errorf("an unknown form: %v", err)
	}
}

// TestMessageErrors: errors keep their status, and mistakes are named.
func TestMessageErrors(t *testing.T) {
	f := &fake{err: status.Error(codes.ResourceExhausted, "later")}
	if _, err := f.service().Search(newCall(t).ctx, &webserverv1.SearchRequest{Query: zoektQuery(t, `const: true`)}); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("%v", err)
	}
	for _, req := range []*webserverv1.SearchRequest{
		{}, {Query: zoektQuery(t, `const: true`), Opts: &webserverv1.SearchOptions{MaxWallTime: durationpb.New(-1)}},
	} {
		f := found()
		if _, err := f.service().Search(newCall(t).ctx, req); status.Code(err) != codes.InvalidArgument || len(f.searched) > 0 {
			t.Errorf("%v: %v", req, err)
		}
	}
	if err := found().service().StreamSearch(&webserverv1.StreamSearchRequest{}, newCall(t)); status.Code(err) != codes.InvalidArgument {
		t.Errorf("a stream without a request: %v", err)
	}
}

// TestMessageWallTime: without MaxWallTime a message gets as much time as the router grants.
func TestMessageWallTime(t *testing.T) {
	for asked, most := range map[time.Duration]time.Duration{0: testLimits.WallTime, time.Second: time.Second, time.Hour: testLimits.WallTime} {
		f := found()
		_, account := f.searchAs(t, &webserverv1.SearchOptions{MaxWallTime: durationpb.New(asked)})
		if f.left > most || f.left < most/2 || strings.Contains(account, "MaxWallTime") != (asked > most) {
			t.Errorf("%v: %v left, %s", asked, f.left, account)
		}
	}
}
