package codehost

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/trawl-search/trawl/internal/gitsource/origin"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// loopback is a policy under which tests reach their servers.
var loopback = origin.Policy{Schemes: []string{"https", "http"}, PrivateNetworks: []string{"127.0.0.0/8"}}

// secret is the credential of all tests; it must appear nowhere else.
const secret = "s3cr3t-of-the-tests"

// fakeRepo is a repo at a fake host.
type fakeRepo struct {
	id                    int
	path                  string
	archived, fork, empty bool
}

// format is what distinguishes a kind of host.
type format struct {
	// list is the path of the owner's repos.
	list string
	// authorized is the header value that a good token gives.
	authorized string
	pageSize   int
	// encode makes one page of the host's format.
	encode func(f *fake, repos []fakeRepo, next string) any
}

// fake is a Git host of some kind.
type fake struct {
	*httptest.Server
	format

	kind string

	mu       sync.Mutex
	repos    []fakeRepo
	seen     []string // requests, as path?query
	unsent   int      // answers without a body: nothing had changed
	answer   func(w http.ResponseWriter, page int) bool
	redirect map[string]string
}

// start makes a fake host with n repos of the owner acme.
func start(t *testing.T, kind string, n int) *fake {
	f := &fake{kind: kind, format: fakes[kind]}
	for i := range n {
		f.repos = append(f.repos, fakeRepo{id: i + 1, path: fmt.Sprintf("acme/r%05d", i)})
	}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

// source is the source of the host's repos.
func (f *fake) source() *ingestv1.Source {
	s := &ingestv1.Source{Name: "x", Kind: f.kind, Url: f.URL, Owner: "acme", Token: &ingestv1.SecretRef{Env: "TRAWL_SECRET_X"}}
	if f.kind == Gerrit {
		s.Owner, s.Username = "", "trawl"
	}
	return s
}

func (f *fake) client(t *testing.T) *Client {
	t.Helper()
	c, err := NewClient(loopback, "", Secrets{Env: func(string) (string, bool) { return secret, true }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// ServeHTTP implements http.Handler: it pages through the repos.
func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen = append(f.seen, r.URL.RequestURI())
	if to, ok := f.redirect[r.URL.Path]; ok {
		http.Redirect(w, r, to+"?"+r.URL.RawQuery, http.StatusMovedPermanently)
		return
	}
	at, _ := strconv.Atoi(r.URL.Query().Get("at") + r.URL.Query().Get("S") + r.URL.Query().Get("start"))
	if f.answer != nil && f.answer(w, at/f.pageSize) {
		return
	}
	switch {
	case r.Header.Get("Authorization") != f.authorized:
		http.Error(w, "bad credentials", http.StatusUnauthorized)
		return
	case r.URL.EscapedPath() != f.list:
		http.Error(w, "no such owner", http.StatusNotFound)
		return
	}
	f.page(w, r, at)
}

func (f *fake) page(w http.ResponseWriter, r *http.Request, at int) {
	end, next := min(at+f.pageSize, len(f.repos)), ""
	if end < len(f.repos) {
		next = fmt.Sprintf("%s%s?at=%d", f.URL, f.list, end)
		w.Header().Set("Link", fmt.Sprintf(`<%s/first>; rel="first", <%s>; rel="next"`, f.URL, next))
	}
	body, _ := json.Marshal(f.encode(f, f.repos[at:end], next))
	if f.kind == Gerrit {
		body = append([]byte(")]}'\n"), body...)
	}
	tag := fmt.Sprintf(`"%x"`, len(body)*31+strings.Count(string(body), "renamed"))
	w.Header().Set("ETag", tag)
	if r.Header.Get("If-None-Match") == tag {
		f.unsent++
		w.WriteHeader(http.StatusNotModified)
		return
	}
	_, _ = w.Write(body)
}

// cloneURL is where a repo of the host is cloned from.
func (f *fake) cloneURL(path string) string {
	u := url.URL{Scheme: "http", Host: strings.TrimPrefix(f.URL, "http://"), Path: path}
	if f.kind == Gerrit || f.kind == Bitbucket {
		return u.String()
	}
	if f.kind == BitbucketServer {
		u.Path = "/scm/" + path
	}
	return u.String() + ".git"
}

const basicTrawl = "Basic dHJhd2w6czNjcjN0LW9mLXRoZS10ZXN0cw==" // trawl and the secret

var fakes = map[string]format{
	GitHub:          {list: "/orgs/acme/repos", authorized: "Bearer " + secret, pageSize: 100, encode: encodeHub},
	Gitea:           {list: "/api/v1/orgs/acme/repos", authorized: "token " + secret, pageSize: 50, encode: encodeHub},
	GitLab:          {list: "/api/v4/groups/acme/projects", authorized: "Bearer " + secret, pageSize: 100, encode: encodeLab},
	Bitbucket:       {list: "/2.0/repositories/acme", authorized: "Bearer " + secret, pageSize: 100, encode: encodeBucket},
	BitbucketServer: {list: "/rest/api/1.0/projects/acme/repos", authorized: "Bearer " + secret, pageSize: 100, encode: encodeServer},
	Gerrit:          {list: "/a/projects/", authorized: basicTrawl, pageSize: 500, encode: encodeGerrit},
}

type object map[string]any

func encodeHub(f *fake, repos []fakeRepo, _ string) any {
	list := []object{}
	for _, r := range repos {
		list = append(list, object{"id": r.id, "full_name": r.path, "clone_url": f.cloneURL(r.path), "archived": r.archived, "fork": r.fork, "private": true, "empty": r.empty})
	}
	return list
}

func encodeLab(f *fake, repos []fakeRepo, _ string) any {
	list := []object{}
	for _, r := range repos {
		o := object{"id": r.id, "path_with_namespace": r.path, "http_url_to_repo": f.cloneURL(r.path), "archived": r.archived, "visibility": "private", "empty_repo": r.empty}
		if r.fork {
			o["forked_from_project"] = object{"id": 1}
		}
		list = append(list, o)
	}
	return list
}

func encodeBucket(f *fake, repos []fakeRepo, next string) any {
	list := []object{}
	for _, r := range repos {
		o := object{"uuid": strconv.Itoa(r.id), "full_name": r.path, "is_private": true, "links": object{"html": object{"href": f.cloneURL(r.path)}}, "parent": nil}
		if r.fork {
			o["parent"] = object{"uuid": "{1}"}
		}
		list = append(list, o)
	}
	return object{"values": list, "next": next}
}

// encodeServer encodes a page of Bitbucket Data Center, which writes project keys in
// capitals and gives the start of the next page.
func encodeServer(f *fake, repos []fakeRepo, next string) any {
	list := []object{}
	for _, r := range repos {
		project, slug, _ := strings.Cut(r.path, "/")
		o := object{
			"id": r.id, "slug": slug, "project": object{"key": strings.ToUpper(project), "public": false}, "archived": r.archived, "public": false,
			"links": object{"clone": []object{{"name": "http", "href": "http://jane@elsewhere/" + r.path}}},
		}
		if r.fork {
			o["origin"] = object{"id": 1}
		}
		list = append(list, o)
	}
	if next == "" {
		return object{"values": list, "isLastPage": true, "nextPageStart": nil}
	}
	_, at, _ := strings.Cut(next, "?at=")
	start, _ := strconv.Atoi(at)
	return object{"values": list, "isLastPage": false, "nextPageStart": start}
}

func encodeGerrit(_ *fake, repos []fakeRepo, next string) any {
	projects := object{}
	for i, r := range repos {
		o := object{"state": "ACTIVE"}
		if r.archived {
			o["state"] = "READ_ONLY"
		}
		if next != "" && i == len(repos)-1 {
			o["_more_projects"] = true
		}
		projects[r.path] = o
	}
	return projects
}
