package indexer

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/internal/membership"
	"github.com/trawl-search/trawl/internal/server"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// whileReadable lets write run while every live searcher reads the shard format that this
// program writes, so that roles can be upgraded in any order. The context of write ends as
// soon as a searcher registers that does not. Until those are upgraded the indexer is not
// ready, and its jobs wait in the queue, where indexers of the version before take them.
// It returns when ctx ends and write has returned.
func whileReadable(ctx context.Context, members *membership.Members, ready *server.Condition, write func(context.Context)) {
	var writing sync.WaitGroup
	defer writing.Wait()
	stop := func() {}
	defer func() { stop() }()
	for running := false; ; {
		snapshot, err := members.WaitListed(ctx)
		if err != nil {
			return // the end of the context
		}
		old := snapshot.CannotRead(format.Version)
		switch {
		case len(old) > 0:
			stop()
			writing.Wait()
			running = false
			ready.Unmet(fmt.Sprintf("shards of format %d would be unreadable: upgrade the searchers %s", format.Version, listed(old)))
		case !running:
			ready.Met()
			current, cancel := context.WithCancel(ctx)
			stop, running = cancel, true
			writing.Go(func() { write(current) })
		}
		select {
		case <-snapshot.Changed():
		case <-ctx.Done():
			return
		}
	}
}

// maxListed bounds the searchers that a condition names.
const maxListed = 5

func listed(searchers []*catalogv1.Searcher) string {
	names := make([]string, 0, maxListed)
	for _, s := range searchers[:min(len(searchers), maxListed)] {
		name := s.GetId()
		if s.GetVersion() != "" {
			name += " (" + s.GetVersion() + ")"
		}
		names = append(names, name)
	}
	if more := len(searchers) - maxListed; more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}
