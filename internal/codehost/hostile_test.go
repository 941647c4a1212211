package codehost

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestLongPaths: a list whose repos have very long paths is refused before it fills the memory.
func TestLongPaths(t *testing.T) {
	f := start(t, GitHub, 3000)
	for i := range f.repos {
		f.repos[i].path += strings.Repeat("x", 16<<10)
	}
	repos, err := f.client(t).List(t.Context(), f.source())
	if err == nil || !strings.Contains(err.Error(), "more than 64 MiB of names and addresses") || !strings.Contains(err.Error(), "divide it") || len(repos) > 0 {
		t.Errorf("%d repos, %v", len(repos), err)
	}
}

// TestLongAddressesOfPages: the addresses of pages, which are kept too, count as well.
func TestLongAddressesOfPages(t *testing.T) {
	f, n, long := start(t, Bitbucket, 0), 0, strings.Repeat("x", 512<<10)
	f.answer = func(w http.ResponseWriter, _ int) bool {
		n++
		fmt.Fprintf(w, `{"values":[],"next":"%s%s?n=%d&%s"}`, f.URL, f.list, n, long)
		return true
	}
	if _, err := f.client(t).List(t.Context(), f.source()); err == nil || !strings.Contains(err.Error(), "more than 64 MiB") {
		t.Error(err)
	}
}

// TestPagesOfNothing: a page of a million entries, all of them empty, costs memory for those alone that a source can have.
func TestPagesOfNothing(t *testing.T) {
	at := &url.URL{Scheme: "https", Host: "git.example.com", Path: "/projects/", RawQuery: "S=0"}
	list := strings.Repeat("{},", 999_999) + "{}"
	var projects bytes.Buffer
	for i := range 999_999 {
		fmt.Fprintf(&projects, `"%d":{},`, i)
	}
	for kind, body := range map[string]string{
		GitHub: "[" + list + "]", GitLab: "[" + list + "]", Gitea: "[" + list + "]", Bitbucket: `{"values":[` + list + `]}`,
		BitbucketServer: `{"isLastPage":true,"values":[` + list + `]}`, Gerrit: `{` + projects.String() + `"x":{}}`,
	} {
		_, err := dialects[kind].read([]byte(body), at, http.Header{})
		if refused, ok := errors.AsType[*Error](err); !ok || !strings.Contains(refused.Reason, "more than 200000 repos") {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// TestAnswersWithoutAList: what is no list of repos is not one without repos, though it is answered with 200: a list that ends so would have all
// repos deleted after the grace time.
func TestAnswersWithoutAList(t *testing.T) {
	for _, body := range []string{
		"", "null", "{}", `{"message":"maintenance"}`, `{"values":null,"isLastPage":true}`, `{"isLastPage":true}`, `"x"`, "[", "<!DOCTYPE html><p>Sign in", ")]}'\n", ")]}'\nnull",
	} {
		eachHost(t, 1, func(t *testing.T, f *fake) {
			if f.kind == Gerrit && body == "{}" {
				return // no projects
			}
			f.answer = func(w http.ResponseWriter, _ int) bool {
				fmt.Fprint(w, body)
				return true
			}
			if repos, err := f.client(t).List(t.Context(), f.source()); err == nil || !strings.Contains(err.Error(), "cannot be understood") {
				t.Errorf("%q: %d repos, %v", body, len(repos), err)
			}
		})
	}
}

// TestProjectsAfterALostQuery: Gerrit says that more projects follow, but a redirect has dropped where the page begins. The list is no whole one.
func TestProjectsAfterALostQuery(t *testing.T) {
	at := &url.URL{Scheme: "https", Host: "git.example.com", Path: "/projects/"}
	if answer, err := readGerrit([]byte(`{"a":{},"b":{"_more_projects":true}}`), at, nil); err == nil {
		t.Errorf("%+v", answer)
	}
}

// TestReposWithoutIDs: where a host gives no ids, repos have none: with the same one, each would pass for another one's new name.
func TestReposWithoutIDs(t *testing.T) {
	for kind, body := range map[string]string{
		GitHub: `[{"full_name":"a/b"}]`, Gitea: `[{"full_name":"a/b"}]`, GitLab: `[{"path_with_namespace":"a/b"}]`,
		Bitbucket: `{"values":[{"full_name":"a/b"}]}`, BitbucketServer: `{"isLastPage":true,"values":[{"slug":"b","project":{"key":"A"}}]}`, Gerrit: `{"a/b":{}}`,
	} {
		answer, err := dialects[kind].read([]byte(body), &url.URL{Scheme: "https", Host: "git.example.com", Path: "/x"}, http.Header{})
		if err != nil || len(answer.repos) != 1 || answer.repos[0].ID != "" || answer.repos[0].Path != "a/b" {
			t.Errorf("%s: %+v, %v", kind, answer, err)
		}
	}
}

// TestSmallListsAreNotSentAgain: a list that is one page is sent once, unless its host may have another page without a change of the first one:
// Gitea, whose administrator may have bounded pages to fewer repos.
func TestSmallListsAreNotSentAgain(t *testing.T) {
	eachHost(t, 3, func(t *testing.T, f *fake) {
		c := f.client(t)
		for range 3 {
			if repos, err := c.List(t.Context(), f.source()); err != nil || len(repos) != 3 {
				t.Fatalf("%d repos, %v", len(repos), err)
			}
		}
		if want := map[bool]int{true: 0, false: 2}[f.kind == Gitea]; f.unsent != want {
			t.Errorf("%d of 3 pages were not sent, want %d", f.unsent, want)
		}
		f.repos = append(f.repos, fakeRepo{id: 9, path: "acme/new"})
		if repos, err := c.List(t.Context(), f.source()); err != nil || len(repos) != 4 {
			t.Errorf("with a new one: %d repos, %v", len(repos), err)
		}
	})
}

// TestFullPageWithAnEmptyRepo: a page is full although Trawl leaves out one of its repos. What follows it is found though it stays as it is.
func TestFullPageWithAnEmptyRepo(t *testing.T) {
	eachHost(t, 1000, func(t *testing.T, f *fake) {
		f.repos[999].empty = true
		c := f.client(t)
		first, err := c.List(t.Context(), f.source())
		if err != nil {
			t.Fatal(err)
		}
		f.repos = append(f.repos, fakeRepo{id: 1001, path: "acme/x"})
		if repos, err := c.List(t.Context(), f.source()); err != nil || len(repos) != len(first)+1 {
			t.Errorf("%d repos, then %d, %v", len(first), len(repos), err)
		}
	})
}

// TestClockOfTheHost: how long a host asks Trawl to wait is read by the clock of the host, and is bounded.
func TestClockOfTheHost(t *testing.T) {
	for _, off := range []time.Duration{-24 * time.Hour, -time.Hour, 0, time.Hour} {
		now := time.Now().Add(off)
		at := now.Add(30 * time.Minute)
		for _, h := range []http.Header{
			{"Retry-After": {at.UTC().Format(http.TimeFormat)}},
			{"Retry-After": {"1800"}},
			{"X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {strconv.FormatInt(at.Unix(), 10)}},
		} {
			h.Set("Date", now.UTC().Format(http.TimeFormat))
			if wait, said := limited(h); !said || (wait-30*time.Minute).Abs() > time.Second {
				t.Errorf("a clock that is off by %v, %v: wait %v", off, h, wait)
			}
		}
	}
	for _, seconds := range []string{"100000", "9223372036854775807"} {
		if wait, _ := limited(http.Header{"Retry-After": {seconds}}); wait != maxWait {
			t.Errorf("Retry-After: %s: %v", seconds, wait)
		}
	}
}

// TestPagesOfTheSameHost: a host may write its own name in other letters than the source, and its port where that is the scheme's own.
func TestPagesOfTheSameHost(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"https://git.example.com", "https://Git.Example.COM/x", true},
		{"https://git.example.com", "https://git.example.com:443/x", true},
		{"http://git.example.com:80", "http://git.example.com", true},
		{"https://git.example.com", "https://git.example.com:80", false},
		{"https://git.example.com", "http://git.example.com:443", false},
		{"https://git.example.com", "https://git.example.com.evil.org", false},
		{"https://git.example.com", "https://evil@git.example.org", false},
	} {
		a, errA := url.Parse(c.a)
		b, errB := url.Parse(c.b)
		if same := sameOrigin(a, b); errA != nil || errB != nil || same != c.same {
			t.Errorf("%s and %s: %v", c.a, c.b, same)
		}
	}
	f := start(t, GitHub, 300)
	s := f.source()
	s.Url = strings.Replace(f.URL, "127.0.0.1", "LOCALHOST", 1)
	f.URL = strings.Replace(f.URL, "127.0.0.1", "localhost", 1) // of the next page
	if repos, err := f.client(t).List(t.Context(), s); err != nil || len(repos) != 300 {
		t.Errorf("%d repos, %v", len(repos), err)
	}
}
