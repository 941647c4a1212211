package codehost

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/trawl-search/trawl/internal/gitsource/origin"
	"github.com/trawl-search/trawl/internal/testrun"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// eachHost runs a test with a fake host of every kind that has n repos.
func eachHost(t *testing.T, n int, test func(t *testing.T, f *fake)) {
	for kind := range fakes {
		t.Run(kind, func(t *testing.T) { test(t, start(t, kind, n)) })
	}
}

func paths(repos []Repo) []string {
	var all []string
	for _, r := range repos {
		all = append(all, r.Path)
	}
	slices.Sort(all)
	return all
}

func (f *fake) paths() []string {
	var all []string
	for _, r := range f.repos {
		all = append(all, r.path)
	}
	slices.Sort(all)
	return all
}

// sentAgain is how many pages of an unchanged list with full pages are sent again: the last one, unless it says itself that it is the last.
func (f *fake) sentAgain() int {
	if f.kind == GitHub || f.kind == GitLab || f.kind == Gitea {
		return 1
	}
	return 0
}

// TestFiveThousandRepos pages through many repos; a second listing transfers no page
// again but a last one that is full.
func TestFiveThousandRepos(t *testing.T) {
	eachHost(t, 5000, func(t *testing.T, f *fake) {
		c := f.client(t)
		repos, err := c.List(t.Context(), f.source())
		if err != nil || !slices.Equal(paths(repos), f.paths()) {
			t.Fatalf("%d repos, %v", len(repos), err)
		}
		if first := repos[0]; first.CloneURL != f.cloneURL(first.Path) || first.Public || first.Archived || first.Fork {
			t.Errorf("first %+v", first)
		}
		pages := 5000 / f.pageSize
		if len(f.seen) != pages || f.unsent != 0 {
			t.Errorf("%d requests, %d of them unchanged, want %d", len(f.seen), f.unsent, pages)
		}
		again, err := c.List(t.Context(), f.source())
		if err != nil || !slices.Equal(again, repos) || f.unsent != pages-f.sentAgain() {
			t.Errorf("again: %d repos, %d pages not sent, %v", len(again), f.unsent, err)
		}
	})
}

// TestTooManyRepos: a source has as many repos as it can have, on pages of each host's size, and not one more. Too many are an error that says so.
func TestTooManyRepos(t *testing.T) {
	for _, kind := range []string{GitHub, GitLab, Gitea} {
		f := start(t, kind, maxRepos)
		same, err := json.Marshal(f.encode(f, f.repos[:f.pageSize], ""))
		testrun.Must(t, err)
		f.encode = func(f *fake, repos []fakeRepo, next string) any {
			if len(repos) == f.pageSize {
				return json.RawMessage(same)
			}
			return fakes[kind].encode(f, repos, next)
		}
		c := f.client(t)
		if repos, err := c.List(t.Context(), f.source()); err != nil || len(repos) != maxRepos || f.unsent > 0 {
			t.Errorf("%s: %d repos, %v, want %d", kind, len(repos), err, maxRepos)
		}
		f.repos = append(f.repos, fakeRepo{id: maxRepos + 1, path: "acme/more"})
		if repos, err := c.List(t.Context(), f.source()); err == nil || !strings.Contains(err.Error(), "more than 200000 repos") || len(repos) > 0 {
			t.Errorf("%s, one repo more: %d repos, %v", kind, len(repos), err)
		}
	}
}

// TestPageAfterAFullOne: a page that was the last one may be as it was, with the same tag, when another one follows it. The list goes on there.
func TestPageAfterAFullOne(t *testing.T) {
	eachHost(t, 1000, func(t *testing.T, f *fake) {
		c := f.client(t)
		for range 3 {
			if repos, err := c.List(t.Context(), f.source()); err != nil || len(repos) != len(f.repos) {
				t.Errorf("%d repos, %v, want %d", len(repos), err, len(f.repos))
			}
			f.repos = append(f.repos, fakeRepo{id: 2000 + len(f.repos), path: fmt.Sprintf("acme/x%05d", len(f.repos))})
		}
	})
}

// TestFactsOfRepos: the properties of repos that hosts list are read.
func TestFactsOfRepos(t *testing.T) {
	eachHost(t, 1, func(t *testing.T, f *fake) {
		f.repos = append(f.repos, fakeRepo{id: 8, path: "acme/old", archived: true}, fakeRepo{id: 9, path: "acme/theirs", fork: true})
		repos, err := f.client(t).List(t.Context(), f.source())
		if err != nil || len(repos) != 3 {
			t.Fatalf("%+v, %v", repos, err)
		}
		for _, r := range repos {
			if want := r.Path == "acme/old" && f.kind != Bitbucket; r.Archived != want {
				t.Errorf("%+v: archived", r)
			}
			if want := r.Path == "acme/theirs" && f.kind != Gerrit; r.Fork != want {
				t.Errorf("%+v: fork", r)
			}
			if _, err := origin.RepoName(r.CloneURL); err != nil {
				t.Errorf("%+v: %v", r, err)
			}
		}
	})
}

// TestRenames: a repo keeps its id, and the redirect of a renamed owner is followed.
func TestRenames(t *testing.T) {
	eachHost(t, 3, func(t *testing.T, f *fake) {
		c := f.client(t)
		before, err := c.List(t.Context(), f.source())
		if err != nil {
			t.Fatal(err)
		}
		f.repos[1].path = "acme/renamed"
		moved := strings.TrimSuffix(f.list, "/") + "/moved"
		f.redirect = map[string]string{f.list: moved}
		f.list = moved
		after, err := c.List(t.Context(), f.source())
		if err != nil || !slices.Equal(paths(after), f.paths()) {
			t.Fatalf("%+v, %v", after, err)
		}
		for _, r := range after {
			i := slices.IndexFunc(before, func(b Repo) bool { return b.ID == r.ID })
			if f.kind != Gerrit && (r.ID == "" || i < 0) {
				t.Errorf("%+v is not one of %+v", r, before)
			}
		}
	})
}

// TestTroubles: refusals of hosts become errors that help people, and never show the
// token.
func TestTroubles(t *testing.T) {
	header := func(code int, pairs ...string) func(http.ResponseWriter, int) bool {
		return func(w http.ResponseWriter, page int) bool {
			if page == 0 {
				return false // the first page is as usual
			}
			for i := 0; i < len(pairs); i += 2 {
				w.Header().Set(pairs[i], pairs[i+1])
			}
			http.Error(w, secret, code)
			return true
		}
	}
	reset := strconv.FormatInt(time.Now().Add(30*time.Minute).Unix(), 10)
	for _, c := range []struct {
		name   string
		answer func(http.ResponseWriter, int) bool
		want   string
		least  time.Duration
	}{
		{"retry after", header(429, "Retry-After", "120"), "limits how often", 2 * time.Minute},
		{"retry at", header(429, "Retry-After", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)), "limits how often", 50 * time.Minute},
		{"primary limit", header(403, "X-Ratelimit-Remaining", "0", "X-Ratelimit-Reset", reset), "limits how often", 25 * time.Minute},
		{"other counter", header(429, "Ratelimit-Remaining", "0", "Ratelimit-Reset", reset), "limits how often", 25 * time.Minute},
		{"expired", header(401), "expired or revoked", 0},
		{"forbidden", header(403), "may not list", 0},
		{"gone", header(404), "no such owner", 0},
		{"broken", header(500), "HTTP 500", 0},
		{"no answer", func(w http.ResponseWriter, page int) bool { return page > 0 && len(w.Header()) == 0 }, "understood", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			eachHost(t, 1000, func(t *testing.T, f *fake) {
				f.answer = c.answer
				repos, err := f.client(t).List(t.Context(), f.source())
				refusal, ok := errors.AsType[*Error](err)
				if !ok || !strings.Contains(refusal.Reason, c.want) || refusal.RetryAfter < c.least || len(repos) > 0 {
					t.Errorf("%d repos, %v", len(repos), err)
				}
				if strings.Contains(fmt.Sprintf("%+v", err), secret) {
					t.Errorf("the error shows the secret: %v", err)
				}
			})
		})
	}
}

// TestCountersAreKept: a host that announces an exhausted quota gets no more
// requests, and the pages that it has sent are not transferred again.
func TestCountersAreKept(t *testing.T) {
	eachHost(t, 1000, func(t *testing.T, f *fake) {
		f.answer = func(w http.ResponseWriter, page int) bool {
			if page == 1 && f.unsent == 0 {
				w.Header().Set("X-Ratelimit-Remaining", "0")
			}
			return false
		}
		c := f.client(t)
		if f.kind == Gerrit {
			f.pageSize = 100 // the request asks for more
		}
		_, err := c.List(t.Context(), f.source())
		if refusal, ok := errors.AsType[*Error](err); !ok || refusal.RetryAfter == 0 || len(f.seen) != 2 {
			t.Fatalf("%d requests, %v", len(f.seen), err)
		}
		repos, err := c.List(t.Context(), f.source())
		if err != nil || len(repos) != 1000 || f.unsent != 2 {
			t.Errorf("%d repos, %d pages not sent again, %v", len(repos), f.unsent, err)
		}
	})
}

// TestCredentialsGoNowhereElse: neither a redirect nor a next page leads credentials
// to another host, and the client connects to no address that the policy forbids.
func TestCredentialsGoNowhereElse(t *testing.T) {
	eachHost(t, 1, func(t *testing.T, f *fake) {
		other := start(t, f.kind, 1)
		f.redirect = map[string]string{f.list: other.URL + other.list}
		if _, err := f.client(t).List(t.Context(), f.source()); err == nil || len(other.seen) > 0 {
			t.Errorf("redirected: %v, the other saw %v", err, other.seen)
		}
		c, err := NewClient(origin.Policy{Schemes: []string{"http"}}, "", Secrets{Env: func(string) (string, bool) { return secret, true }})
		if err != nil {
			t.Fatal(err)
		}
		f.seen = nil
		if _, err := c.List(t.Context(), f.source()); err == nil || len(f.seen) > 0 {
			t.Errorf("private: %v, it saw %v", err, f.seen)
		}
	})
	f := start(t, Bitbucket, 1)
	other := start(t, Bitbucket, 1)
	f.encode = func(*fake, []fakeRepo, string) any {
		return object{"values": []object{}, "next": other.URL + other.list}
	}
	if _, err := f.client(t).List(t.Context(), f.source()); err == nil || len(other.seen) > 0 {
		t.Errorf("next page: %v, the other saw %v", err, other.seen)
	}
	f.encode = func(*fake, []fakeRepo, string) any { return object{"values": []object{}, "next": f.URL + f.list} }
	if _, err := f.client(t).List(t.Context(), f.source()); err == nil || !strings.Contains(err.Error(), "does not end") {
		t.Errorf("a circle: %v", err)
	}
}

// TestUsers: the repos of a user have another path than those of an organisation.
func TestUsers(t *testing.T) {
	for kind, list := range map[string]string{
		GitHub: "/users/acme/repos", Gitea: "/api/v1/users/acme/repos", GitLab: "/api/v4/users/acme/projects",
	} {
		f := start(t, kind, 2)
		f.list = list
		s := f.source()
		s.User = true
		if repos, err := f.client(t).List(t.Context(), s); err != nil || len(repos) != 2 {
			t.Errorf("%s: %v, %v", kind, repos, err)
		}
	}
}

func TestSingleURL(t *testing.T) {
	f := start(t, GitHub, 0)
	s := f.source()
	s.Kind, s.Url = Git, "https://git.example.com/a/b.git"
	repos, err := f.client(t).List(t.Context(), s)
	if err != nil || len(repos) != 1 || repos[0].Path != "a/b" || repos[0].CloneURL != s.Url {
		t.Errorf("%+v, %v", repos, err)
	}
}

// TestListThatLostItsLastPage: where a host answers 404 beyond its end, the page that led there is read anew by the next list.
func TestListThatLostItsLastPage(t *testing.T) {
	pages := 3
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var p int
		fmt.Sscan(r.URL.Query().Get("p"), &p)
		if p >= pages {
			http.Error(w, "no such page", http.StatusNotFound)
			return
		}
		w.Header().Set("ETag", fmt.Sprintf(`"body-%d"`, p)) // of the body, as is usual
		if p+1 < pages {
			w.Header().Set("Link", fmt.Sprintf(`<http://%s%s?p=%d>; rel="next"`, r.Host, r.URL.Path, p+1))
		}
		if r.Header.Get("If-None-Match") == w.Header().Get("ETag") {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		fmt.Fprintf(w, `[{"id":%d,"full_name":"acme/r%d","clone_url":"http://%s/acme/r%d"}]`, p+1, p, r.Host, p)
	}))
	defer s.Close()
	c, err := NewClient(loopback, "", Secrets{Env: func(string) (string, bool) { return secret, true }})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	src := &ingestv1.Source{Name: "x", Kind: GitHub, Url: s.URL, Owner: "acme"}
	if got, err := c.List(t.Context(), src); len(got) != 3 || err != nil {
		t.Fatal(got, err)
	}
	pages = 2
	if got, err := c.List(t.Context(), src); err == nil {
		t.Errorf("the first list after a page was gone has %d repos", len(got))
	}
	for range 2 {
		if got, err := c.List(t.Context(), src); len(got) != 2 || err != nil {
			t.Errorf("a later list: %d repos, %v", len(got), err)
		}
	}
}

// TestFailedListsAreForgotten: a host whose pages have other addresses each time, and that fails each time, does not fill the memory.
func TestFailedListsAreForgotten(t *testing.T) {
	n := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n++
		if n%101 == 100 {
			http.Error(w, "later", http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Link", fmt.Sprintf(`<http://%s%s?cursor=%d>; rel="next"`, r.Host, r.URL.Path, n))
		var b strings.Builder
		for i := range 100 {
			fmt.Fprintf(&b, `,{"id":%d,"full_name":"acme/r%d","clone_url":"http://%s/acme/r%d"}`, i, i, r.Host, i)
		}
		fmt.Fprintf(w, `[%s]`, b.String()[1:])
	}))
	defer s.Close()
	c, err := NewClient(loopback, "", Secrets{Env: func(string) (string, bool) { return secret, true }})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	src := &ingestv1.Source{Name: "x", Kind: GitHub, Url: s.URL, Owner: "acme"}
	for range 5 {
		if _, err := c.List(t.Context(), src); err == nil {
			t.Fatal("the list has an end")
		}
	}
	if kept := len(c.cache) + len(c.part); kept > 200 {
		t.Errorf("%d pages of failed lists are kept", kept)
	}
}

// TestPagesOutliveAFailedList: a host that was down for a moment does not send all pages again.
func TestPagesOutliveAFailedList(t *testing.T) {
	eachHost(t, 1000, func(t *testing.T, f *fake) {
		if f.kind == Gerrit {
			f.pageSize = 100
		}
		c := f.client(t)
		if _, err := c.List(t.Context(), f.source()); err != nil {
			t.Fatal(err)
		}
		pages := len(f.seen)
		f.answer = func(w http.ResponseWriter, _ int) bool {
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		}
		if _, err := c.List(t.Context(), f.source()); err == nil {
			t.Fatal("a host that is down has a list")
		}
		f.answer = nil
		if repos, err := c.List(t.Context(), f.source()); err != nil || len(repos) != 1000 || f.unsent != pages-f.sentAgain() {
			t.Errorf("%d repos, %d of %d pages not sent again, %v", len(repos), f.unsent, pages, err)
		}
	})
}
