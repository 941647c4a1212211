package served

import (
	"context"
	"fmt"

	"github.com/trawl-search/trawl/bench/peer"
)

// memory is a server's memory at one moment.
type memory struct {
	server, when string
	peer.Memory
}

// memoryOf measures the memory of a running server.
func (h *host) memoryOf(ctx context.Context, name, when string) error {
	m, err := h.servers[name].Memory(ctx)
	if err != nil {
		return fmt.Errorf("reading the memory of %s: %w", name, err)
	}
	h.memory = append(h.memory, memory{name, when, m})
	return nil
}

// remember measures the servers' memory after all queries.
func (h *host) remember(ctx context.Context) error {
	for _, name := range []string{trawl, zoekt} {
		if err := h.memoryOf(ctx, name, "after all queries"); err != nil {
			return err
		}
	}
	return nil
}
