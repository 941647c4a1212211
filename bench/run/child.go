package run

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/trawl-search/trawl/bench/corpus"
	"github.com/trawl-search/trawl/bench/engine"
	"github.com/trawl-search/trawl/bench/peer"
	"github.com/trawl-search/trawl/index/docstore"
)

// ChildArgument as the only argument makes the program a child: a separate process for one
// measurement, so that its processor time and memory can be measured.
const ChildArgument = "child"

// order is the work of a child: merge the shards of Pack into Out, index Repos into it, or open
// Shards.
type order struct {
	Repos   []corpus.Repo
	Out     string
	PerRepo bool
	Pack    []string

	Shards []string
	Opens  int
}

type answer struct {
	Indexed engine.Indexed
	Opened  engine.Opened
	Packed  engine.Packed
}

// Child carries out the order on in, and writes its answer to out.
func Child(ctx context.Context, in io.Reader, out io.Writer) error {
	var o order
	if err := json.NewDecoder(in).Decode(&o); err != nil {
		return fmt.Errorf("reading the order: %w", err)
	}
	var a answer
	var err error
	switch {
	case len(o.Pack) > 0:
		a.Packed, err = engine.Pack(ctx, o.Pack, o.Out, packLimit, docstore.Compact)
	case o.Out != "":
		a.Indexed, err = engine.Index(ctx, o.Repos, o.Out, o.PerRepo)
	default:
		a.Opened, err = engine.Open(ctx, o.Shards, o.Opens)
	}
	if err != nil {
		return err
	}
	if err := json.NewEncoder(out).Encode(a); err != nil {
		return fmt.Errorf("answering: %w", err)
	}
	return nil
}

// delegate runs an order in a child.
func delegate(ctx context.Context, o order) (answer, peer.Cost, error) {
	var a answer
	var cost peer.Cost
	self, err := os.Executable()
	if err != nil {
		return a, cost, fmt.Errorf("finding this program: %w", err)
	}
	ask, err := json.Marshal(o)
	if err != nil {
		return a, cost, fmt.Errorf("writing the order: %w", err)
	}
	cmd := exec.CommandContext(ctx, self, ChildArgument)
	cmd.Stdin = bytes.NewReader(ask)
	out, err := peer.Measure(cmd, &cost)
	if err != nil {
		return a, cost, err
	}
	if err := json.Unmarshal(out, &a); err != nil {
		return a, cost, fmt.Errorf("reading the answer: %w", err)
	}
	return a, cost, nil
}
