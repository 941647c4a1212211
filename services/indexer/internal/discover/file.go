package discover

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/trawl-search/trawl/internal/codehost"
)

// applyFile replaces all sources by those of the file, if there is a file. It writes
// only what differs. A file that cannot be read or breaks a rule changes nothing.
func (d *Discoverer) applyFile(ctx context.Context) {
	if d.File == "" {
		return
	}
	err := d.tryFile(ctx)
	if ctx.Err() != nil {
		return
	}
	text := ""
	d.Metrics.refused.Set(0)
	if err != nil {
		text = err.Error()
		d.Metrics.refused.Set(1)
	}
	if text != "" && text != d.refused { // only once for each reason
		d.Log.WarnContext(ctx, "the file of sources is not applied, the sources stay as they are", "file", d.File, "error", err)
	}
	d.refused = text
}

func (d *Discoverer) tryFile(ctx context.Context) error {
	f, err := os.Open(d.File)
	if err != nil {
		return fmt.Errorf("read the file of sources: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, codehost.MaxFileBytes+1))
	if err != nil {
		return fmt.Errorf("read the file of sources: %w", err)
	}
	list, err := codehost.ParseSources(text)
	if err != nil {
		return err
	}
	if err := codehost.CheckAllowed(list, d.Policy); err != nil {
		return err
	}
	done, err := d.Store.ApplySources(ctx, list)
	if n := len(done.Added) + len(done.Changed) + len(done.Removed); n > 0 {
		d.Log.InfoContext(ctx, "sources of the file applied", "added", done.Added, "changed", done.Changed, "removed", done.Removed)
	}
	return err
}
