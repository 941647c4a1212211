package run

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// copyRepo makes a bare copy of a repository.
func copyRepo(ctx context.Context, from, to string, seed uint64) (*pushedRepo, error) {
	from, err := filepath.Abs(from)
	if err != nil {
		return nil, fmt.Errorf("finding %s: %w", from, err)
	}
	if out, err := exec.CommandContext(ctx, "git", "clone", "--quiet", "--bare", "--shared", "--", from, to).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("copying %s: %w: %s", from, err, out)
	}
	r := &pushedRepo{dir: to, next: rand.New(rand.NewPCG(seed, 0)).IntN}
	if _, err := r.git(ctx, "", "read-tree", "HEAD"); err != nil {
		return nil, err
	}
	list, err := r.git(ctx, "", "ls-files", "-s", "-z")
	if err != nil {
		return nil, err
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(list, "\x00"), "\x00") {
		if path, ok := strings.CutPrefix(line, "100644 "); ok {
			_, path, _ = strings.Cut(path, "\t")
			r.files = append(r.files, path)
		}
	}
	if len(r.files) == 0 {
		return nil, fmt.Errorf("%s has no files", from)
	}
	return r, nil
}

// commit adds a line with the token to a random text of at most 1 MiB.
func (r *pushedRepo) commit(ctx context.Context, token string) (p push, err error) {
	for range 100 {
		path := r.files[r.next(len(r.files))]
		text, err := r.git(ctx, "", "cat-file", "blob", ":"+path)
		if err != nil {
			return p, err
		}
		if strings.ContainsRune(text, 0) || len(text) > 1<<20 {
			continue
		}
		line := token + "\n"
		p.fileBytes, p.wroteBytes = int64(len(text)+len(line)), int64(len(line))
		oid, err := r.git(ctx, text+line, "hash-object", "-w", "--stdin")
		if err != nil {
			return p, err
		}
		if _, err := r.git(ctx, "100644 "+strings.TrimSpace(oid)+"\t"+path+"\x00", "update-index", "-z", "--index-info"); err != nil {
			return p, err
		}
		tree, err := r.git(ctx, "", "write-tree")
		if err != nil {
			return p, err
		}
		commit, err := r.git(ctx, "", "commit-tree", "-m", token, "-p", "HEAD", strings.TrimSpace(tree))
		if err != nil {
			return p, err
		}
		_, err = r.git(ctx, "", "update-ref", "HEAD", strings.TrimSpace(commit))
		return p, err
	}
	return p, fmt.Errorf("%s has too few texts", r.dir)
}

// counters are counters of the program.
type counters struct {
	documents, content, shards, stored float64
}

// readCounters reads the counters from the program's metrics.
func readCounters(ctx context.Context, address string) (c counters, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		return c, fmt.Errorf("asking for metrics: %w", err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return c, fmt.Errorf("asking for metrics: %w", err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 16<<20))
	if err != nil {
		return c, fmt.Errorf("reading metrics: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		at := strings.LastIndexByte(strings.TrimSpace(line), ' ')
		if at < 0 || line[0] == '#' {
			continue
		}
		value, err := strconv.ParseFloat(strings.TrimSpace(line[at:]), 64)
		if err != nil {
			continue
		}
		switch name, _, _ := strings.Cut(line[:at], "{"); name {
		case "trawl_indexer_documents_total":
			c.documents += value
		case "trawl_indexer_content_bytes_total":
			c.content += value
		case "trawl_indexer_shards_total":
			c.shards += value
		case "trawl_indexer_shard_bytes_total":
			c.stored += value
		}
	}
	return c, nil
}
