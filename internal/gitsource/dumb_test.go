package gitsource

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/trawl-search/trawl/index/docstore"

	"github.com/trawl-search/trawl/internal/gitsource/gitsourcetest"
)

// plainFiles serves a folder of bare repositories as a server does that knows nothing of git. It reports
// whether something below /secret was asked for.
func plainFiles(t *testing.T, root string) (url string, config func(*FetchConfig), leaked *atomic.Bool) {
	t.Helper()
	leaked = new(atomic.Bool)
	files := http.FileServer(http.Dir(root))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "secret") {
			leaked.Store(true)
		}
		if to, err := os.ReadFile(filepath.Join(root, r.URL.Path+".redirect")); err == nil {
			http.Redirect(w, r, string(to), http.StatusFound)
			return
		}
		files.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL, func(c *FetchConfig) {
		c.Schemes, c.PrivateNetworks = []string{"http"}, []string{"127.0.0.1/32"}
	}, leaked
}

// TestFetchFromPlainFiles: a server of plain files sends whole histories, which are not kept, and what comes
// from it is checked as what comes from others.
func TestFetchFromPlainFiles(t *testing.T) {
	r := gitsourcetest.New(t)
	root := t.TempDir()
	publish := func() {
		t.Helper()
		os.RemoveAll(filepath.Join(root, "r.git"))
		r.Git("clone", "-q", "--bare", r.Dir, filepath.Join(root, "r.git"))
		r.Git("--git-dir="+filepath.Join(root, "r.git"), "update-server-info")
	}
	r.Files("main", "a", strings.Repeat("a long first version\n", 1000))
	r.Files("main", "a", "1")
	r.Files("dev", "a", "2")
	r.Git("tag", "-a", "-m", "x", "v1", "dev")
	publish()
	url, config, _ := plainFiles(t, root)
	f, mirror := newFetcher(t, config), filepath.Join(t.TempDir(), "m %20#é")
	if got := fetchAll(t, f, mirror, url+"/r.git"); len(got) != 1 || got["a@main"] != "1" {
		t.Errorf("got %v", got)
	}
	if got := fetchAll(t, f, mirror, url+"/r.git", "**", "refs/tags/*"); len(got) != 2 || got["a@main"] != "1" || got["a@dev,refs/tags/v1"] != "2" {
		t.Errorf("got %v", got)
	}
	r.Files("main", "a", "3")
	publish()
	if got := fetchAll(t, f, mirror, url+"/r.git"); got["a@main"] != "3" {
		t.Errorf("after a push got %v", got)
	}
	if left, err := filepath.Glob(filepath.Join(mirror, "tmp_*")); err != nil || len(left) > 0 {
		t.Errorf("left over: %v, %v", left, err)
	}

	tree := object(r, "tree", "100644 ..\x00"+rawName(r.Blob("1")))
	r.Git("update-ref", "refs/heads/main", r.Git("commit-tree", "-m", "x", nameOf(tree)))
	publish()
	_, err := f.Fetch(t.Context(), mirror, url+"/r.git", []docstore.Branch{{Name: "main"}}, nil)
	wantFailure(t, err, Refused, "hasDotdot")
}

// TestPlainFilesLeadNowhereElse: neither alternates nor redirects of a server of plain files lead git to
// another repository, of the same host or of another.
func TestPlainFilesLeadNowhereElse(t *testing.T) {
	secret := gitsourcetest.New(t)
	commit := secret.Files("main", "a", "secret")
	for name, content := range map[string]string{
		"objects/info/http-alternates":                           "/secret.git/objects\n",
		"objects/info/alternates":                                "../../secret.git/objects\n",
		"objects/" + commit[:2] + "/" + commit[2:] + ".redirect": "/secret.git/objects/" + commit[:2] + "/" + commit[2:],
		"objects/info/packs.redirect":                            "/secret.git/objects/info/packs",
		"info/refs.redirect":                                     "/secret.git/info/refs",
	} {
		root := t.TempDir()
		for _, repo := range []string{"secret.git", "r.git"} {
			secret.Git("clone", "-q", "--bare", secret.Dir, filepath.Join(root, repo))
			secret.Git("--git-dir="+filepath.Join(root, repo), "update-server-info")
		}
		objects := filepath.Join(root, "r.git", "objects")
		if err := os.RemoveAll(objects); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(root, "r.git"), name, content)
		url, config, leaked := plainFiles(t, root)
		_, err := newFetcher(t, config).Fetch(t.Context(), filepath.Join(t.TempDir(), "m"), url+"/r.git", []docstore.Branch{{Name: "main"}}, nil)
		if fail, ok := errors.AsType[*Failure](err); !ok || fail.Kind != Refused && fail.Kind != Damaged {
			t.Errorf("%s: %v", name, err)
		}
		if leaked.Load() {
			t.Errorf("%s: it was followed", name)
		}
	}
}
