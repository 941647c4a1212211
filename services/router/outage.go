package router

import (
	"context"
	"fmt"
	"time"

	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/server"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
	webserverv1 "github.com/trawl-search/trawl/proto/zoekt/webserver/v1"
)

// conditionPause is the time between two looks at what readiness depends on.
const conditionPause = time.Second

// followEtcd sets the condition that the roots were read and that etcd has answered lately,
// until ctx ends. A router without etcd answers bounded reads only, so callers are better
// served by one that reaches it. For as long as tokens outlive an outage it stays ready:
// if etcd is away from all routers, there is no better one.
func (r *Router) followEtcd(ctx context.Context, view *catalog.View, etcd *server.Condition) {
	bound := r.cfg.Access.Staleness + r.cfg.Access.Grace
	counted := uint64(0)
	everySecond(ctx, view.Snapshot().Changed(), func() {
		silence := view.Silence()
		r.silence.Set(silence.Seconds())
		losses, lost := view.Losses()
		r.wentBack.Add(float64(losses - counted))
		counted = losses
		switch {
		case lost:
			etcd.Unmet("etcd went back in time, or lost its data, and its roots were not read yet")
		case view.Snapshot().Revision == 0:
			etcd.Unmet("the roots were not read yet")
		case silence > bound:
			etcd.Unmet(fmt.Sprintf("etcd has not answered for %v: linearizable reads fail", silence.Round(time.Second)))
		default:
			etcd.Met()
		}
	})
}

// checkAccess sets the condition that callers with tokens are admitted and their queries sealed,
// until ctx ends.
func (r *Router) checkAccess(ctx context.Context, ready *server.Condition) {
	ready.Unmet("tokens were not read yet")
	if r.tokens.WaitCurrent(ctx) != nil || r.key.Wait(ctx) != nil {
		return
	}
	everySecond(ctx, nil, func() {
		err := r.tokens.Check()
		switch {
		case err != nil:
			ready.Unmet(err.Error())
		case !r.key.Known():
			ready.Unmet("there is no key to seal plans with")
		default:
			ready.Met()
		}
	})
}

// everySecond calls check every conditionPause, and once when first is closed, until ctx
// ends.
func everySecond(ctx context.Context, first <-chan struct{}, check func()) {
	tick := time.NewTicker(conditionPause)
	defer tick.Stop()
	for {
		check()
		select {
		case <-tick.C:
		case <-first:
			first = nil
		case <-ctx.Done():
			return
		}
	}
}

// searchMethods are the methods and paths that count as searches, by their name in the metrics.
var searchMethods = map[string]string{
	searchv1.SearchService_Search_FullMethodName:             "search",
	searchv1.SearchService_StreamSearch_FullMethodName:       "stream_search",
	searchv1.SearchService_List_FullMethodName:               "list",
	searchv1.SearchService_StreamList_FullMethodName:         "stream_list",
	searchv1.SearchService_GetFile_FullMethodName:            "get_file",
	searchv1.SearchService_GetFiles_FullMethodName:           "get_files",
	searchv1.SearchService_ListTree_FullMethodName:           "list_tree",
	webserverv1.WebserverService_Search_FullMethodName:       "search",
	webserverv1.WebserverService_StreamSearch_FullMethodName: "stream_search",
	webserverv1.WebserverService_List_FullMethodName:         "list",
	searchv1.SearchService_Definitions_FullMethodName:        "search",
	searchv1.SearchService_References_FullMethodName:         "search",
	zoektSearch: "search",
	zoektList:   "list",
}

// countUnavailable counts a search that the gate refused though its caller did nothing wrong.
func (r *Router) countUnavailable(method string) {
	if name, ok := searchMethods[method]; ok {
		r.metrics.Unavailable(name)
	}
}
