package search_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/internal/access"
	"github.com/trawl-search/trawl/internal/searchapi"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
	"github.com/trawl-search/trawl/services/router/internal/fanout"
	"github.com/trawl-search/trawl/services/router/internal/search"
)

// costly is a searcher that reports what its calls cost. It has no file.
type costly struct {
	searchv1.SearchServiceClient
	cost  searchapi.Cost
	hangs bool
	lags  time.Duration // how long it takes to end when it hangs
	// other is the next replica, nil for none.
	other *costly
}

func (c *costly) Candidates(searchapi.Digest) []fanout.Target {
	targets := []fanout.Target{{ID: "first", Address: "first"}}
	if c.other != nil {
		targets = append(targets, fanout.Target{ID: "other", Address: "other"})
	}
	return targets
}

func (c *costly) Client(address string) (searchv1.SearchServiceClient, error) {
	if address == "other" {
		return c.other, nil
	}
	return c, nil
}

// answer is the account of a call, whose cost is in the trailer.
func (c *costly) answer(ctx context.Context, p *searchv1.Plan, opts []grpc.CallOption) (*searchv1.Coverage, error) {
	if c.hangs {
		<-ctx.Done()
		time.Sleep(c.lags)
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	tellCost(opts, c.cost)
	shards := []searchapi.Shard{{Digest: searchapi.Digest(p.Shards[0].Digest)}}
	account := searchapi.NewAccount(shards)
	account.Searched(shards[0].Digest)
	return account.Coverage(), nil
}

func (c *costly) StreamSearch(ctx context.Context, req *searchv1.StreamSearchRequest, opts ...grpc.CallOption) (grpc.ServerStreamingClient[searchv1.StreamSearchResponse], error) {
	answered, err := c.answer(ctx, req.Search.Plan, opts)
	return &oneMessage[searchv1.StreamSearchResponse]{message: &searchv1.StreamSearchResponse{Coverage: answered}}, err
}

func (c *costly) StreamList(ctx context.Context, req *searchv1.StreamListRequest, opts ...grpc.CallOption) (grpc.ServerStreamingClient[searchv1.StreamListResponse], error) {
	answered, err := c.answer(ctx, req.List.Plan, opts)
	return &oneMessage[searchv1.StreamListResponse]{message: &searchv1.StreamListResponse{Coverage: answered}}, err
}

func (c *costly) GetFile(ctx context.Context, req *searchv1.GetFileRequest, opts ...grpc.CallOption) (*searchv1.GetFileResponse, error) {
	_, err := c.answer(ctx, req.Plan, opts)
	return &searchv1.GetFileResponse{}, err
}

func (c *costly) ListTree(ctx context.Context, req *searchv1.ListTreeRequest, opts ...grpc.CallOption) (*searchv1.ListTreeResponse, error) {
	answered, err := c.answer(ctx, req.Plan, opts)
	return &searchv1.ListTreeResponse{Coverage: answered}, err
}

// limitedService is a service over one costly searcher, whose callers may each use half a
// processor: 30 s and 15 GiB at once.
func limitedService(t *testing.T, c *costly) *search.Service {
	t.Helper()
	digest := d(1)
	root := &catalogv1.Root{Repo: "repo", Generation: 1, Shards: []*catalogv1.ShardRef{{Digest: digest[:], SizeBytes: 1}}}
	layout, err := search.NewLayout(1, []*catalogv1.Root{root})
	if err != nil {
		t.Fatal(err)
	}
	return newService(t, search.Config{
		Budget: search.Budget{Default: time.Second, Most: time.Minute}, MaxQueries: 1000, CallerProcessors: 0.5,
	}, &simulation{layout: layout}, c)
}

// TestUsageOfCallers: a caller that has used up its allowance, by whatever method, is refused until
// the allowance is back, and learns when that is. Other callers are not refused. Without
// authentication, no caller is.
func TestUsageOfCallers(t *testing.T) {
	methods := map[string]func(context.Context, *search.Service) error{
		"search": func(ctx context.Context, s *search.Service) error {
			_, err := s.Search(ctx, &searchv1.SearchRequest{Query: "q"})
			return err
		},
		"list": func(ctx context.Context, s *search.Service) error {
			_, err := s.List(ctx, &searchv1.ListRequest{Query: "q"})
			return err
		},
		"get file": func(ctx context.Context, s *search.Service) error {
			_, err := s.GetFile(ctx, &searchv1.GetFileRequest{Repo: "repo", Path: []byte("p")})
			return err
		},
		"get files": func(ctx context.Context, s *search.Service) error {
			resp, err := s.GetFiles(ctx, &searchv1.GetFilesRequest{Files: []*searchv1.FileName{{Repo: "repo", Path: []byte("p")}, {Repo: "other", Path: []byte("p")}}})
			if err == nil && resp.Files[0].GetFile() == nil {
				err = status.Error(codes.Code(resp.Files[0].GetError().GetCode()), resp.Files[0].GetError().GetMessage())
			}
			return err
		},
		"list tree": func(ctx context.Context, s *search.Service) error {
			_, err := s.ListTree(ctx, &searchv1.ListTreeRequest{Repo: "repo"})
			return err
		},
	}
	costs := map[string]searchapi.Cost{"processor": {Processor: 10 * time.Second}, "bytes": {Decoded: 5 << 30}}
	for method, ask := range methods {
		for of, cost := range costs {
			t.Run(method+" by "+of, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := limitedService(t, &costly{cost: cost})
					greedy, other := access.With(t.Context(), caller{access.Anyone, "greedy"}), access.With(t.Context(), caller{access.Anyone, "other"})
					for range 4 { // the fourth overdraws by all of its cost
						if err := ask(greedy, s); err != nil {
							t.Fatal(err)
						}
					}
					err := ask(greedy, s)
					if !searchapi.IsOverloaded(err) {
						t.Fatalf("overdrawn: %v", err)
					}
					if err := ask(other, s); err != nil {
						t.Errorf("another caller: %v", err)
					}
					for range 10 {
						if err := ask(access.With(t.Context(), access.Anyone), s); err != nil {
							t.Errorf("nobody in particular: %v", err)
						}
					}
					wait := status.Convert(err).Details()[0].(*errdetails.RetryInfo).RetryDelay.AsDuration()
					if wait.Round(time.Millisecond) != 20*time.Second {
						t.Errorf("to come back after %v", wait)
					}
					time.Sleep(wait - time.Second)
					if err := ask(greedy, s); !searchapi.IsOverloaded(err) {
						t.Errorf("a second early: %v", err)
					}
					time.Sleep(time.Second + time.Millisecond)
					if err := ask(greedy, s); err != nil {
						t.Errorf("when it came back: %v", err)
					}
				})
			})
		}
	}
}

// TestListingsAreQueries: calls that ask no searcher take slots as batch queries do, and leave the others. Their
// time is charged.
func TestListingsAreQueries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := limitedService(t, &costly{})
		as := func(who string) context.Context { return access.With(t.Context(), caller{access.Anyone, who}) }
		ask := func(who string) error {
			_, err := s.Search(as(who), &searchv1.SearchRequest{Query: "q"})
			return err
		}
		var leave []func()
		for i := 0; ; i++ {
			end, err := s.Enter(as(fmt.Sprint("lister", i%40)))
			if err != nil {
				if !searchapi.IsOverloaded(err) {
					t.Fatal(err)
				}
				break
			}
			leave = append(leave, end)
		}
		if err := ask("other"); err != nil || len(leave) == 0 {
			t.Errorf("beside %d calls: %v", len(leave), err)
		}
		for _, end := range leave {
			end()
		}
		end, err := s.Enter(as("greedy"))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(40 * time.Second)
		end()
		if err := ask("greedy"); !searchapi.IsOverloaded(err) {
			t.Errorf("a search after a call of 40 seconds: %v", err)
		}
		if _, err := s.Enter(as("greedy")); !searchapi.IsOverloaded(err) {
			t.Errorf("another call: %v", err)
		}
		if err := ask("other"); err != nil {
			t.Errorf("another caller: %v", err)
		}
	})
}

// TestCallersWhoLeavePay: a query that its caller gives up costs the time that the searcher spent
// on it. One that a searcher did not answer costs its caller nothing.
func TestCallersWhoLeavePay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hung := &costly{hangs: true}
		s := limitedService(t, hung)
		ask := func(who string, leaves bool) error {
			ctx, cancel := context.WithTimeout(access.With(t.Context(), caller{access.Anyone, who}), 50*time.Second)
			defer cancel()
			if leaves {
				time.AfterFunc(40*time.Second, cancel)
			}
			_, err := s.Search(ctx, &searchv1.SearchRequest{Query: "q"})
			return err
		}
		for who, leaves := range map[string]bool{"patient": false, "hasty": true} {
			hung.hangs = true
			for range 3 {
				_ = ask(who, leaves)
			}
			hung.hangs = false
			if err := ask(who, false); searchapi.IsOverloaded(err) != leaves {
				t.Errorf("%s: %v", who, err)
			}
		}
	})
}

// TestHedgesCostNothing: a call that is given up for another searcher's answer is charged to
// nobody, even if it ends after the query.
func TestHedgesCostNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := &costly{other: &costly{}}
		s := limitedService(t, first)
		ctx := access.With(t.Context(), caller{access.Anyone, "c"})
		ask := func() time.Duration {
			within, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			began := time.Now()
			if _, err := s.Search(within, &searchv1.SearchRequest{Query: "q"}); err != nil {
				t.Fatal(err)
			}
			return time.Since(began)
		}
		for range 20 {
			ask()
		}
		first.hangs, first.lags = true, time.Minute
		if took := ask(); took > 30*time.Second {
			t.Errorf("it took %v: there was no hedge", took)
		}
		time.Sleep(time.Minute) // the call that was given up ends
		synctest.Wait()
		first.hangs, first.cost = false, searchapi.Cost{Processor: 30*time.Second - time.Millisecond}
		ask()
		ask() // the allowance is not used up
	})
}
