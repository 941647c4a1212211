package cluster

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/trawl-search/trawl/internal/gitsource/gitsourcetest"
)

// gitServer serves the repositories of a test over HTTP from this machine.
type gitServer struct {
	server *httptest.Server
	mu     sync.Mutex
	repos  map[string]http.Handler
	// hold, unless nil, is called before each request is answered.
	hold atomic.Pointer[func(*http.Request)]
}

func newGitServer(t *testing.T, address string) *gitServer {
	t.Helper()
	g := &gitServer{repos: map[string]http.Handler{}}
	ln, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		t.Fatal(err)
	}
	g.server = httptest.NewUnstartedServer(g)
	g.server.Listener.Close()
	g.server.Listener = ln
	g.server.Start()
	t.Cleanup(g.server.Close)
	return g
}

// ServeHTTP implements http.Handler: /NAME/… is the repository NAME.
func (g *gitServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if hold := g.hold.Load(); hold != nil {
		(*hold)(r)
	}
	name, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	g.mu.Lock()
	handler := g.repos[name]
	g.mu.Unlock()
	if handler == nil {
		http.NotFound(w, r)
		return
	}
	r.URL.Path = "/repo/.git/" + rest
	handler.ServeHTTP(w, r)
}

// repository is a Git repository, with the content that searches must find.
type repository struct {
	*gitsourcetest.Repo
	name string // of the repo in Trawl
	url  string
	// commits counts them.
	commits int
	// files are the contents of the newest commit by path.
	files map[string]string
	// ballast is in every commit too: alternating paths and contents. It has neither the
	// word heron nor the tokens.
	ballast []string
}

// newRepository makes a repository and serves it.
func (c *cluster) newRepository(name string) *repository {
	c.t.Helper()
	r := &repository{Repo: gitsourcetest.New(c.t), name: "example.org/" + name, url: c.git.server.URL + "/" + name}
	handler := gitsourcetest.Handler(c.t, filepath.Dir(r.Dir))
	c.git.mu.Lock()
	defer c.git.mu.Unlock()
	c.git.repos[name] = handler
	return r
}

// token is a word in every file of the nth commit, and in no other commit.
func (r *repository) token(n int) string {
	return fmt.Sprintf("token_%s_%d_", strings.ReplaceAll(filepath.Base(r.name), "-", "_"), n)
}

// commit makes the next commit, with the given numbers of files and of lines in each. Every
// file has the word heron and the commit's token. It returns the commit's id.
func (r *repository) commit(rng *rand.Rand, files, lines int) (name string) {
	r.commits++
	r.files = map[string]string{}
	var list []string
	for i := range files {
		var text strings.Builder
		fmt.Fprintf(&text, "the heron of %s\n", r.token(r.commits))
		for range lines {
			fmt.Fprintf(&text, "%016x %016x\n", rng.Uint64(), rng.Uint64())
		}
		path := fmt.Sprintf("dir%d/file%d.txt", i%3, i)
		r.files[path] = text.String()
		list = append(list, path, text.String())
	}
	return r.Files("main", append(list, r.ballast...)...)
}

// load gives the repository files that no commit changes.
func (r *repository) load(rng *rand.Rand, files int) {
	for i := range files {
		r.ballast = append(r.ballast, fmt.Sprintf("ballast/file%d.txt", i), fmt.Sprintf("%0600x\n", rng.Uint64()))
	}
}

// newRepositories makes n repositories with a few small files each.
func (c *cluster) newRepositories(prefix string, n int) []*repository {
	c.t.Helper()
	list := make([]*repository, n)
	for i := range list {
		list[i] = c.newRepository(fmt.Sprintf("%s%d", prefix, i))
		list[i].commit(c.rng, 2+c.rng.IntN(4), 20)
	}
	return list
}
