package served

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/bench/corpus"
	"github.com/trawl-search/trawl/bench/peer"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// The two modes.
const (
	exhaustive = iota
	top50
)

var modes = [2]string{"exhaustive", "top 50"}

// shown is the number of files requested.
const shown = 50

// Names of contestants that are not just a server's name.
const (
	early = "zoekt, stopping early"
	topK  = "trawl, gRPC's top k"
)

// contestant is a server and a way to query it.
type contestant struct {
	name string
	*peer.Server

	ask func(ctx context.Context, query string) (answer, error)
	// all says that an answer is complete only if all shards were searched.
	all bool
	// buckets reports the buckets that it takes part in; nil means all.
	buckets func(corpus.Bucket) bool
}

func (c *contestant) takesPart(b corpus.Bucket) bool { return c.buckets == nil || c.buckets(b) }

// answer has the measurements of one answer.
type answer struct {
	took time.Duration
	peer.Stats
}

// contestants returns those of a mode, Trawl first.
func (h *host) contestants(mode int) []contestant {
	opts, peerName := peer.Every(shown), zoekt
	if mode == top50 {
		opts, peerName = peer.Early(shown), early
	}
	opts.MaxWallTime = h.cfg.Timeout
	list := []contestant{
		{name: trawl, Server: h.servers[trawl], ask: asker(h.servers[trawl], opts), all: true},
		{name: peerName, Server: h.servers[zoekt], ask: asker(h.servers[zoekt], opts), all: mode == exhaustive},
	}
	if s := h.servers[re2]; s != nil && mode == exhaustive {
		list = append(list, contestant{name: re2, Server: s, ask: asker(s, opts), all: true, buckets: corpus.Bucket.Regex})
	}
	if s := h.servers[limited]; s != nil {
		list = append(list, contestant{name: limited, Server: s, ask: asker(s, opts), all: mode == exhaustive})
	}
	if mode == top50 {
		list = append(list, contestant{name: topK, Server: h.servers[trawl], ask: h.askTopK, all: true})
	}
	return list
}

// asker returns a function that queries a server over JSON.
func asker(s *peer.Server, opts peer.Options) func(context.Context, string) (answer, error) {
	return func(ctx context.Context, query string) (answer, error) {
		reply, err := s.Search(ctx, query, opts)
		if err != nil {
			return answer{took: reply.Took}, err
		}
		stats, err := reply.Stats()
		return answer{reply.Took, stats}, err
	}
}

// askTopK asks for the best files, which the JSON interface cannot express. Counts are lower
// bounds.
func (h *host) askTopK(ctx context.Context, query string) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, h.cfg.Timeout)
	defer cancel()
	began := time.Now()
	found, err := searchv1.NewSearchServiceClient(h.conn).Search(ctx, &searchv1.SearchRequest{
		Query: query, Options: &searchv1.SearchOptions{Mode: searchv1.Mode_MODE_TOP_K, MaxFiles: shown},
	})
	a := answer{took: time.Since(began)}
	if status.Code(err) == codes.DeadlineExceeded {
		err = errors.Join(err, context.DeadlineExceeded)
	}
	if err != nil {
		return a, fmt.Errorf("asking for the best files: %w", err)
	}
	a.Duration = found.GetStatistics().GetDuration().AsDuration()
	a.Crashes, a.ShardsSkipped = int(found.GetCoverage().GetFailed()), int(found.GetCoverage().GetNotReached())
	return a, nil
}

// run is one run of one query.
type run struct {
	client, own time.Duration
	// late runs used all of their time.
	late bool
	// failed is the reason why there is no time; empty if there is one.
	failed string
	counts peer.Stats
}

// once runs a query once. Only the end of ctx is an error.
func (h *host) once(ctx context.Context, c *contestant, query string) (run, error) {
	// A server that does not stop in time is cut off soon after.
	inner, cancel := context.WithTimeout(ctx, h.cfg.Timeout+h.cfg.Timeout/10)
	defer cancel()
	a, err := c.ask(inner, query)
	if ctx.Err() != nil {
		return run{}, context.Cause(ctx)
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded), err == nil && (a.took >= h.cfg.Timeout || c.all && a.ShardsSkipped > 0):
		return run{client: h.cfg.Timeout, own: h.cfg.Timeout, late: true}, nil
	case err != nil:
		return run{failed: err.Error()}, nil
	case a.Crashes > 0:
		return run{failed: fmt.Sprintf("%d shards failed", a.Crashes)}, nil
	}
	return run{client: a.took, own: a.Duration, counts: a.Stats}, nil
}
