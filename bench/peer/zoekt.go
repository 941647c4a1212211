package peer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/trawl-search/trawl/bench/corpus"
	"github.com/trawl-search/trawl/bench/querylog"
)

// zoekt is driven over its JSON API on a loopback address.
type zoekt struct {
	indexer, webserver string
	address            string
	server             *exec.Cmd
}

func newZoekt(bin string) *zoekt {
	z := &zoekt{indexer: "zoekt-index", webserver: "zoekt-webserver"}
	if bin != "" {
		z.indexer, z.webserver = filepath.Join(bin, z.indexer), filepath.Join(bin, z.webserver)
	}
	if !onPath(z.indexer) || !onPath(z.webserver) {
		return nil
	}
	return z
}

func (*zoekt) Name() string    { return "zoekt" }
func (*zoekt) CountsAll() bool { return true }

// Version is the digest of the server, and the revision that it was built
// from if it was built to say so.
func (z *zoekt) Version(ctx context.Context) string {
	version := "zoekt"
	if path, err := exec.LookPath(z.webserver); err == nil {
		if program, err := os.ReadFile(path); err == nil {
			version += fmt.Sprintf(", server's SHA-256 %.16x", sha256.Sum256(program))
		}
	}
	out, err := exec.CommandContext(ctx, "go", "version", "-m", z.webserver).Output()
	if err != nil {
		return version
	}
	for line := range bytes.Lines(out) {
		if _, revision, ok := bytes.Cut(line, []byte("vcs.revision=")); ok {
			version += ", revision " + string(bytes.TrimSpace(revision))
		}
	}
	return version
}

// maxZoektRepos bounds the programs that are started: each takes 0.12 s of
// processor time for the smallest of repos.
const maxZoektRepos = 1000

func (z *zoekt) Index(ctx context.Context, c corpus.Corpus, dir string) (cost Cost, ok bool, err error) {
	if len(c.Repos) > maxZoektRepos {
		return Cost{}, false, ErrTooManyRepos
	}
	for _, r := range c.Repos {
		if err := z.indexRepo(ctx, r, dir, &cost); err != nil {
			return Cost{}, true, err
		}
	}
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".zoekt" {
			return err
		}
		info, err := d.Info()
		if err == nil {
			cost.IndexBytes += info.Size()
		}
		return err
	})
	if err != nil {
		return Cost{}, true, fmt.Errorf("reading the size of zoekt's index: %w", err)
	}
	return cost, true, z.serve(ctx, dir, len(c.Repos))
}

// indexRepo gives the repo its name by a file beside the index: zoekt would
// name it by the last part of its folder, which need not be unique.
func (z *zoekt) indexRepo(ctx context.Context, r corpus.Repo, dir string, cost *Cost) error {
	meta, err := json.Marshal(map[string]string{"Name": r.Name})
	if err != nil {
		return fmt.Errorf("writing zoekt's description: %w", err)
	}
	file := filepath.Join(dir, "repo.meta")
	if err := os.WriteFile(file, meta, 0o666); err != nil {
		return fmt.Errorf("writing zoekt's description: %w", err)
	}
	_, err = Measure(exec.CommandContext(ctx, z.indexer, "-disable_ctags", "-index", dir, "-meta", file, r.Dir), cost)
	return err
}

// serve starts the server and waits until it has loaded all repos.
func (z *zoekt) serve(ctx context.Context, dir string, repos int) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("finding a free port: %w", err)
	}
	z.address = listener.Addr().String()
	listener.Close()
	z.server = exec.CommandContext(ctx, z.webserver, "-index", dir, "-listen", z.address, "-rpc", "-html=false")
	if err := z.server.Start(); err != nil {
		return fmt.Errorf("starting zoekt: %w", err)
	}
	var listed struct {
		List struct{ Repos []json.RawMessage }
	}
	for range 600 {
		if err = z.post(ctx, "/api/list", map[string]any{"Q": "repo:.*"}, &listed); err == nil && len(listed.List.Repos) >= repos {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(100 * time.Millisecond):
		}
	}
	return fmt.Errorf("zoekt loaded %d of %d repos in a minute: %w", len(listed.List.Repos), repos, err)
}

func (z *zoekt) post(ctx context.Context, path string, ask, answer any) error {
	body, err := json.Marshal(ask)
	if err != nil {
		return fmt.Errorf("writing a request to zoekt: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+z.address+path, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("making a request to zoekt: %w", err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("asking zoekt: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("zoekt answered %s", resp.Status)
	}
	if err := json.NewDecoder(resp.Body).Decode(answer); err != nil {
		return fmt.Errorf("reading zoekt's answer: %w", err)
	}
	return nil
}

// zoektAnswer is the part of /api/search's answer that is measured.
type zoektAnswer struct {
	Result struct {
		// Duration in nanoseconds, by zoekt's own clock.
		Duration int64
		Files    []struct{ Repository, FileName string }
	}
}

func (a *zoektAnswer) files() map[string]bool {
	files := make(map[string]bool, len(a.Result.Files))
	for _, f := range a.Result.Files {
		files[f.Repository+"/"+f.FileName] = true
	}
	return files
}

// unlimited is more matches than any corpus has.
const unlimited = 1 << 30

func (z *zoekt) Files(ctx context.Context, q querylog.Query) (map[string]bool, error) {
	// Names only: the matches of a common word would be most of the tree.
	answer, err := z.search(ctx, "type:file "+q.Text(), unlimitedMatches())
	return answer.files(), err
}

// Time asks for 50 files of all matches, however they are asked for: with its
// limits lifted zoekt chooses them from all, as Trawl does.
func (z *zoekt) Time(ctx context.Context, q querylog.Query, _ bool) (time.Duration, error) {
	opts := unlimitedMatches()
	opts["MaxDocDisplayCount"], opts["ChunkMatches"] = shown, true
	return z.time(ctx, q, opts)
}

// shown is how many files are asked for.
const shown = 50

func unlimitedMatches() map[string]any {
	return map[string]any{"ShardMaxMatchCount": unlimited, "TotalMaxMatchCount": unlimited}
}

// time is by zoekt's own clock, without HTTP and JSON, as Trawl's is.
func (z *zoekt) time(ctx context.Context, q querylog.Query, opts map[string]any) (time.Duration, error) {
	answer, err := z.search(ctx, q.Text(), opts)
	return time.Duration(answer.Result.Duration), err
}

func (z *zoekt) search(ctx context.Context, text string, opts map[string]any) (answer zoektAnswer, err error) {
	opts["MaxWallTime"] = time.Minute
	err = z.post(ctx, "/api/search", map[string]any{"Q": text, "Opts": opts}, &answer)
	return answer, err
}

// earlyZoekt is the same server, asked as its own interface asks: by the number
// of files alone, from which it derives limits on matches (calculateDefaultSearchLimits
// in internal/json) and stops at them, whether or not better files follow.
type earlyZoekt struct{ *zoekt }

func (*earlyZoekt) Name() string    { return "zoekt, stopping early" }
func (*earlyZoekt) CountsAll() bool { return false }

// Version says how it differs.
func (z *earlyZoekt) Version(context.Context) string {
	return z.Name() + ": the same server, which sets its own limits on matches"
}

// Index has nothing to do: the index is zoekt's, which is indexed before.
func (*earlyZoekt) Index(_ context.Context, c corpus.Corpus, _ string) (Cost, bool, error) {
	if len(c.Repos) > maxZoektRepos {
		return Cost{}, false, ErrTooManyRepos
	}
	return Cost{}, false, nil
}

// Files answers the 50 files only.
func (z *earlyZoekt) Files(ctx context.Context, q querylog.Query) (map[string]bool, error) {
	answer, err := z.search(ctx, q.Text(), map[string]any{"MaxDocDisplayCount": shown})
	return answer.files(), err
}

func (z *earlyZoekt) Time(ctx context.Context, q querylog.Query, exhaustive bool) (time.Duration, error) {
	if exhaustive {
		return 0, ErrUnsupported
	}
	return z.time(ctx, q, map[string]any{"MaxDocDisplayCount": shown, "ChunkMatches": true})
}

// Close leaves the server to zoekt.
func (*earlyZoekt) Close() error { return nil }

func (z *zoekt) Close() error {
	if z.server == nil {
		return nil
	}
	err := z.server.Process.Kill()
	_ = z.server.Wait() // it was killed, which is what it says
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("ending zoekt: %w", err)
	}
	return nil
}
