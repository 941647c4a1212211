package serving_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/internal/searchapi"
	"github.com/trawl-search/trawl/internal/testrun"
	webserverv1 "github.com/trawl-search/trawl/proto/zoekt/webserver/v1"
)

// TestSameAsZoekt sends the same messages to a router and to zoekt-webserver, over the same
// files, and compares files and ranges. It needs zoekt-index and zoekt-webserver on the PATH.
func TestSameAsZoekt(t *testing.T) {
	indexer, err := exec.LookPath("zoekt-index")
	if err != nil {
		t.Skip("zoekt-index and zoekt-webserver (sourcegraph/zoekt, c4d8f353) are not on the PATH")
	}
	webserver, err := exec.LookPath("zoekt-webserver")
	if err != nil {
		t.Skip("zoekt-webserver (sourcegraph/zoekt, c4d8f353) is not on the PATH")
	}
	const repo, seed = "peer", 5
	rng := rand.New(rand.NewPCG(seed, 1))
	files := sources(rng)
	c := startCluster(t, 1, 1)
	c.publish(repo, files)
	peer := startZoekt(t, indexer, webserver, repo, files)
	found := 0
	for _, text := range peerQueries(rng) {
		parsed, err := searchapi.Parse(text, 1)
		c.must(err)
		req := &webserverv1.SearchRequest{Query: zoektNode(t, parsed), Opts: &webserverv1.SearchOptions{ChunkMatches: true, NumContextLines: rng.Int64N(3)}}
		for _, chunks := range []bool{true, false} {
			req.Opts.ChunkMatches = chunks
			want, err := peer.Search(t.Context(), req)
			c.must(err)
			got, err := c.webserver().Search(t.Context(), req)
			c.must(err)
			if a, b := describePeer(got.Files), describePeer(want.Files); !slices.Equal(a, b) {
				t.Errorf("%s, chunks %v:\n here %q\nzoekt %q", text, chunks, a, b)
			}
			for side, files := range map[string][]*webserverv1.FileMatch{"here": got.Files, "zoekt": want.Files} {
				if wrong := notBestFirst(files, side == "zoekt"); wrong != "" {
					t.Errorf("%s, chunks %v, %s: %s", text, chunks, side, wrong)
				}
			}
			found += len(want.Files)
			// A text that stands twice in a query counts twice here, and once with zoekt.
			if words := strings.Fields(strings.ReplaceAll(text, "(", "")); chunks && len(words) == len(unique(words)) && (got.Stats.MatchCount != want.Stats.MatchCount || got.Stats.FileCount != want.Stats.FileCount) {
				t.Errorf("%s: %d matches in %d files here, %d in %d", text, got.Stats.MatchCount, got.Stats.FileCount, want.Stats.MatchCount, want.Stats.FileCount)
			}
		}
	}
	sets := []*webserverv1.Q{
		{Query: &webserverv1.Q_RepoSet{RepoSet: &webserverv1.RepoSet{Set: map[string]bool{repo: true}}}},
		{Query: &webserverv1.Q_RepoSet{RepoSet: &webserverv1.RepoSet{Set: map[string]bool{"other": true}}}},
		{Query: &webserverv1.Q_RepoRegexp{RepoRegexp: &webserverv1.RepoRegexp{Regexp: "^pe+r$"}}},
		{Query: &webserverv1.Q_FileNameSet{FileNameSet: &webserverv1.FileNameSet{Set: []string{"dir0/file0.go", "dir1/file1.md", "file"}}}},
		{Query: &webserverv1.Q_Boost{Boost: &webserverv1.Boost{Boost: 3, Child: zoektNode(t, &query.Substring{Pattern: "alpha"})}}},
		{Query: &webserverv1.Q_RawConfig{RawConfig: &webserverv1.RawConfig{Flags: []webserverv1.RawConfig_Flag{webserverv1.RawConfig_FLAG_NO_FORKS, webserverv1.RawConfig_FLAG_NO_ARCHIVED}}}},
	}
	for _, q := range sets {
		req := &webserverv1.SearchRequest{Query: q, Opts: &webserverv1.SearchOptions{ChunkMatches: true}}
		want, err := peer.Search(t.Context(), req)
		c.must(err)
		got, err := c.webserver().Search(t.Context(), req)
		c.must(err)
		if a, b := describePeer(got.Files), describePeer(want.Files); !slices.Equal(a, b) {
			t.Errorf("%v:\n here %q\nzoekt %q", q, a, b)
		}
	}
	if found < 1000 {
		t.Errorf("only %d files were found", found)
	}
}

func unique(words []string) map[string]bool {
	set := make(map[string]bool)
	for _, word := range words {
		set[word] = true
	}
	return set
}

// notBestFirst says what is wrong if lines or chunks of contents have no score, are not best first, or have a best line without a match. A line in which
// all matches begin and end beside bytes like their own scores nothing with zoekt, which then names no best line.
func notBestFirst(files []*webserverv1.FileMatch, unnamed bool) string {
	for _, f := range files {
		last := math.Inf(1)
		inOrder := func(score float64) bool {
			ok := score > 0 && score <= last
			last = score
			return ok
		}
		for _, l := range f.LineMatches {
			if !l.FileName && !inOrder(l.Score) {
				return fmt.Sprintf("%s: line %d has score %v", f.FileName, l.LineNumber, l.Score)
			}
		}
		for _, c := range f.ChunkMatches {
			if !c.FileName && (!inOrder(c.Score) || (!unnamed || c.BestLineMatch > 0) && !slices.ContainsFunc(c.Ranges, func(r *webserverv1.Range) bool { return r.Start.LineNumber == c.BestLineMatch })) {
				return fmt.Sprintf("%s: chunk at %v with best line %d has score %v", f.FileName, c.ContentStart, c.BestLineMatch, c.Score)
			}
		}
	}
	return ""
}

// describePeer writes each file with its chunks or lines as one line, in order of the lines.
func describePeer(files []*webserverv1.FileMatch) (lines []string) {
	for _, f := range files {
		var parts []string
		for _, chunk := range f.ChunkMatches {
			for _, r := range chunk.Ranges {
				parts = append(parts, fmt.Sprintf("%v:%v-%v", chunk.FileName, r.Start, r.End))
			}
		}
		for _, l := range f.LineMatches {
			for _, m := range l.LineFragments {
				parts = append(parts, fmt.Sprintf("%v:%d %q %q %q %d+%d", l.FileName, l.LineNumber, l.Before, l.Line, l.After, m.Offset, m.MatchLength))
			}
		}
		slices.Sort(parts) // zoekt orders them by score
		lines = append(lines, fmt.Sprintf("%s %q", f.FileName, parts))
	}
	slices.Sort(lines)
	return lines
}

var peerWords = []string{"alpha", "Beta", "gamma_delta", "camelCase", "x1", "needle", "func", "return", "ÄÖ", "naïve", "0xff", "TODO"}

// sources returns text files in several folders.
func sources(rng *rand.Rand) map[string]string {
	files := make(map[string]string)
	for i := range 60 {
		var text strings.Builder
		for range 1 + rng.IntN(40) {
			for range rng.IntN(7) {
				text.WriteString(peerWords[rng.IntN(len(peerWords))])
				text.WriteString([]string{" ", "(", ") ", ".", "\t", ", "}[rng.IntN(6)])
			}
			text.WriteByte('\n')
		}
		text.WriteString("the end of it")
		files[fmt.Sprintf("dir%d/file%d.%s", i%5, i, []string{"go", "md", "txt"}[i%3])] = text.String()
	}
	return files
}

// peerQueries returns queries that do not depend on a repo's properties.
func peerQueries(rng *rand.Rand) (queries []string) {
	word := func() string { return peerWords[rng.IntN(len(peerWords))] }
	for range 6 {
		a, b, c := word(), word(), word()
		queries = append(queries,
			a, "case:yes "+a, "case:no "+strings.ToUpper(a), "c:"+a, a+" "+b, a+" or "+b, a+" -"+b, "("+a+" or "+b+" ) -"+c,
			a+".*"+b, "^"+a, a+`\s+`+b, `(`+a+`|`+b+`)\W`, `"`+a+" "+b+`"`, "type:file "+a, "f:"+a+" "+b, a+" f:dir"+fmt.Sprint(rng.IntN(6)),
		)
	}
	return append(queries, `f:\.go$`, `f:file1`, `-f:dir`, `f:dir1 -f:md`, `alpha f:^dir0/`, `(?s)alpha.{0,20}Beta`, `end of it$`, "r:peer needle", "r:other needle", "lang:go", "r:peer", "-f:dir1")
}

// startZoekt serves the files with zoekt-webserver until the test ends.
func startZoekt(t *testing.T, indexer, webserver, repo string, files map[string]string) webserverv1.WebserverServiceClient {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	folder, index := filepath.Join(t.TempDir(), repo), t.TempDir()
	for path, content := range files {
		file := filepath.Join(folder, path)
		must(os.MkdirAll(filepath.Dir(file), 0o700))
		must(os.WriteFile(file, []byte(content), 0o600))
	}
	out, err := exec.CommandContext(t.Context(), indexer, "-disable_ctags", "-index", index, folder).CombinedOutput()
	if err != nil {
		t.Fatalf("index by zoekt: %v\n%s", err, out)
	}
	address := testrun.Address(t)
	serve := exec.CommandContext(t.Context(), webserver, "-index", index, "-listen", address, "-html=false")
	serve.Cancel = func() error { return serve.Process.Signal(syscall.SIGTERM) }
	serve.WaitDelay = 10 * time.Second
	wait, err := testrun.Start(serve)
	must(err)
	t.Cleanup(func() {
		_ = serve.Process.Kill() // it may have ended
		_ = wait()
	})
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(err)
	t.Cleanup(func() { must(conn.Close()) })
	client := webserverv1.NewWebserverServiceClient(conn)
	testrun.Eventually(t, "zoekt-webserver has the repo", func(ctx context.Context) error {
		list, err := client.List(ctx, &webserverv1.ListRequest{Query: &webserverv1.Q{Query: &webserverv1.Q_Const{Const: true}}})
		if err == nil && len(list.Repos) != 1 {
			err = fmt.Errorf("it lists %v", list)
		}
		return err
	})
	return client
}
