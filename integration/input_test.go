package integration

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/integration/workload"
	"github.com/trawl-search/trawl/internal/testrun"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// get fetches a page.
func get(ctx context.Context, url string) (text string, code int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return "", 0, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", 0, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), resp.StatusCode, err
}

// TestBadInput gives one cluster wrong input of every kind. The cluster must name what is
// wrong and go on.
func TestBadInput(t *testing.T) {
	c := newCluster(t, 1)
	t.Run("URLs", func(t *testing.T) { badURLs(t, c) })
	t.Run("repositories", func(t *testing.T) { badRepositories(t, c) })
	t.Run("queries", func(t *testing.T) { badQueries(t, c) })
	t.Run("requests", func(t *testing.T) { badRequests(t, c) })
	t.Run("odd files", func(t *testing.T) { oddFiles(t, c) })
	t.Run("corrupt shard", func(t *testing.T) { corruptShards(t, c) })
	for _, p := range append([]*process{c.router, c.indexer, c.servers}, c.searchers...) {
		if !p.running() {
			t.Errorf("%s did not survive: %v", p.name, p.err)
		}
	}
}

func badURLs(t *testing.T, c *cluster) {
	for url, rule := range map[string]string{
		"--upload-pack=touch":                 "dash",
		"https://-oProxyCommand=x/y":          "host",
		"ext::sh -c touch% x":                 "transport-helper",
		"ftp://example.org/r":                 "scheme",
		"git://example.org/r":                 "scheme",
		"https://user:hunter2@example.org/r":  "credentials",
		"http://10.1.2.3/r":                   "private-address",
		"http://169.254.169.254/latest":       "private-address",
		"http://[::ffff:10.0.0.1]/r":          "private-address",
		"https://2130706433/r":                "",
		"/etc":                                "folder",
		filepath.Join(c.dir, "..", "..", "x"): "folder",
		"https://example.org/\x00":            "",
		"":                                    "",
	} {
		_, err := c.ingest.PutRepo(t.Context(), &ingestv1.PutRepoRequest{Url: url})
		if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), rule) {
			t.Errorf("PutRepo(%q): %v; want InvalidArgument that names %q", url, err, rule)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the password is shown: %v", err)
		}
		if names := violations(err); len(names) == 0 {
			t.Errorf("PutRepo(%q): the error names no field: %v", url, err)
		}
	}
}

// violations are the fields that an error names.
func violations(err error) []string {
	var names []string
	for _, d := range status.Convert(err).Details() {
		if bad, ok := d.(*errdetails.BadRequest); ok {
			for _, v := range bad.GetFieldViolations() {
				names = append(names, v.GetField())
			}
		}
	}
	return names
}

func badRepositories(t *testing.T, c *cluster) {
	empty := newRepository(t, c.dir, "empty")
	good := newRepository(t, c.dir, "good")
	good.write("a.txt", "a good one\n")
	good.commit("first")
	notGit := filepath.Join(c.dir, "not-git")
	if err := os.Mkdir(notGit, 0o755); err != nil {
		t.Fatal(err)
	}
	locked := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", "Basic")
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer locked.Close()
	absent := httptest.NewServer(http.NotFoundHandler())
	defer absent.Close()
	for _, tt := range []struct{ name, url, branch, reason string }{
		{"missing folder", filepath.Join(c.dir, "nowhere"), "", "no such folder"},
		{"not a repository", notGit, "", "does not exist"},
		{"empty", empty.path, "", "empty"},
		{"missing branch", good.path, "no-such-branch", "no-such-branch"},
		{"locked", locked.URL + "/r", "", "credentials"},
		{"absent", absent.URL + "/r", "", "does not exist"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var branches []string
			if tt.branch != "" {
				branches = []string{tt.branch}
			}
			s := c.settled(t, c.put(t, tt.url, "bad/"+strings.ReplaceAll(tt.name, " ", "-"), branches...))
			if s.GetState() != ingestv1.State_STATE_FAILED || !strings.Contains(strings.ToLower(s.GetReason()), tt.reason) {
				t.Errorf("%v; want failed, with a reason that has %q", s, tt.reason)
			}
			if strings.Contains(s.GetReason(), "fatal:") {
				t.Errorf("the reason is git's own output: %s", s.GetReason())
			}
		})
	}
	c.index(t, good, "good")
	c.expect(t, "a good one", "good:a.txt")
}

func badQueries(t *testing.T, c *cluster) {
	for text, position := range map[string]uint32{"foo (bar": 4, "foo or": 4, "a[b": 0, "(foo))": 5} {
		_, err := c.query(t.Context(), text)
		if status.Code(err) != codes.InvalidArgument {
			t.Errorf("query %q: %v", text, err)
			continue
		}
		detail := queryError(err)
		if detail == nil || detail.GetPosition() > uint32(len(text)) || detail.GetExpected() == "" {
			t.Errorf("query %q: the error has no place or no hint: %v", text, detail)
		} else if detail.GetPosition() < position {
			t.Errorf("query %q: position %d, want %d or later", text, detail.GetPosition(), position)
		}
	}
	_, err := c.query(t.Context(), strings.Repeat("(", 3000)+"a"+strings.Repeat(")", 3000))
	if d := queryError(err); status.Code(err) != codes.InvalidArgument || d.GetLimit() == "" {
		t.Errorf("a query too deep: %v", err)
	}
}

func queryError(err error) *searchv1.QueryError {
	for _, d := range status.Convert(err).Details() {
		if q, ok := d.(*searchv1.QueryError); ok {
			return q
		}
	}
	return nil
}

func badRequests(t *testing.T, c *cluster) {
	_, err := c.search.Search(t.Context(), &searchv1.SearchRequest{Options: &searchv1.SearchOptions{MaxFiles: 10001}})
	if status.Code(err) != codes.InvalidArgument || !strings.Contains(strings.Join(violations(err), " "), "max_files") {
		t.Errorf("a limit that is too high: %v", err)
	}
	_, err = c.search.Search(t.Context(), &searchv1.SearchRequest{Query: "x", PageToken: []byte("not a token")})
	if status.Code(err) != codes.InvalidArgument {
		t.Errorf("a page token that is none: %v", err)
	}
	_, err = c.search.Search(t.Context(), &searchv1.SearchRequest{Query: "x", Plan: &searchv1.Plan{}})
	if status.Code(err) != codes.InvalidArgument {
		t.Errorf("a plan from outside: %v", err)
	}
}

// oddFiles indexes files with strange names or of kinds that are skipped. Each must be found
// by name, and each skipped one listed with its reason.
func oddFiles(t *testing.T, c *cluster) {
	r := newRepository(t, c.dir, "odd")
	r.write("new\nline.txt", "oddities newline\n")
	r.write("latin\xe9.txt", "oddities latin\n")
	r.write("-dash.txt", "oddities dash\n")
	r.write("binary.bin", "oddities\x00binary\n")
	r.write("huge.txt", "oddities "+strings.Repeat("huge\n", 8<<20))
	r.write(strings.Repeat("deep/", 300)+"file.txt", "oddities deep\n")
	if err := os.Symlink("binary.bin", filepath.Join(r.path, "link")); err != nil {
		t.Fatal(err)
	}
	r.git("add", "-A", "-f")
	r.git("update-index", "--add", "--cacheinfo", "160000,"+strings.Repeat("12", 20)+",module")
	r.git("commit", "-q", "-m", "odd")
	c.index(t, r, "odd")
	c.expect(t, "r:odd oddities -f:deep", "odd:new\nline.txt", "odd:latin\xe9.txt", "odd:-dash.txt")
	c.expect(t, "r:odd binary.bin f:^link$", "odd:link") // by its target
	list, err := c.search.List(t.Context(), &searchv1.ListRequest{Query: "r:^odd$", MaxSkippedFiles: 100})
	if err != nil || len(list.GetRepos()) != 1 {
		t.Fatalf("List: %v, %v", list, err)
	}
	reasons := map[string]searchv1.SkipReason{}
	for _, f := range list.GetRepos()[0].GetSkippedFiles() {
		reasons[string(f.GetPath())] = f.GetReason()
	}
	for path, want := range map[string]searchv1.SkipReason{
		"binary.bin": searchv1.SkipReason_SKIP_REASON_BINARY,
		"huge.txt":   searchv1.SkipReason_SKIP_REASON_TOO_LARGE,
		"module":     searchv1.SkipReason_SKIP_REASON_SUBMODULE,
	} {
		if reasons[path] != want {
			t.Errorf("%s was skipped for %v, want %v", path, reasons[path], want)
		}
		c.expect(t, "r:odd f:^"+path+"$", "odd:"+path)
	}
}

// putAside is what a searcher logs about a damaged file.
const putAside = "its file goes to quarantine"

// corruptShards damages the files in the searcher's cache in each way that disks do. No
// answer may be wrong, the searcher survives, and it fetches the shard again.
func corruptShards(t *testing.T, c *cluster) {
	want := "good:a.txt"
	for _, tt := range []struct {
		name   string
		damage func(path string, size int64) error
		live   bool // damaged while the searcher runs
		short  bool // taken for an unfinished download, and fetched again without a log line
	}{
		{name: "flipped bytes, found at the start", damage: flip},
		{name: "cut file, found at the start", damage: func(path string, size int64) error { return os.Truncate(path, size/2) }, short: true},
		{name: "cut under a running searcher", damage: func(path string, _ int64) error { return os.Truncate(path, 0) }, live: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if !tt.live {
				c.searchers[0].stop(t)
			}
			damageAll(t, c.searcherCache(0), tt.damage)
			before := 0
			if tt.live {
				before = c.searchers[0].count(putAside)
			} else {
				c.searchers[0] = c.startSearcher(t, 0)
				c.searchers[0].addresses(t)
			}
			testrun.Eventually(t, "the answer is whole again", func(context.Context) error {
				answer, err := c.query(t.Context(), "a good one")
				if err != nil {
					return err
				}
				for f := range files(answer) {
					if f != want {
						t.Fatalf("a wrong answer from a damaged shard: %s", f)
					}
				}
				return workload.Compare(answer, []string{want})
			})
			if !tt.short && c.searchers[0].count(putAside) == before {
				t.Error("the searcher did not say that it put the damaged file aside")
			}
			if !c.searchers[0].running() {
				t.Fatalf("the searcher died: %v\n%s", c.searchers[0].err, c.searchers[0].tail(30))
			}
		})
	}
}

// flip inverts a byte in every KiB.
func flip(path string, size int64) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for i := size / 2 % 1024; i < size; i += 1024 {
		content[i] ^= 0xff
	}
	return os.WriteFile(path, content, 0o644)
}

// damageAll damages every shard file below dir.
func damageAll(t *testing.T, dir string, damage func(path string, size int64) error) {
	t.Helper()
	n := 0
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == "quarantine" {
			return filepath.SkipDir
		}
		if err != nil || d.IsDir() || filepath.Ext(path) != ".trawl" {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		n++
		return damage(path, info.Size())
	})
	if err != nil || n == 0 {
		t.Fatalf("damaged %d shards in %s: %v", n, dir, err)
	}
}
