package codehost

import (
	"net/url"
	"strings"
	"testing"

	"pgregory.net/rapid"

	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

const (
	linkCommit  = "0123"
	linkPath    = "a/b ?#%&+.go"
	escapedPath = "a/b%20%3F%23%25%26%2B.go"
)

// TestPagesByName: a host whose name reveals its software has pages without a source.
func TestPagesByName(t *testing.T) {
	pages := func(repo, file, blame, history, line string) Pages {
		return Pages{repo, repo + "/" + file + "/" + escapedPath + line, repo + "/" + blame + "/" + escapedPath + line, repo + "/" + history + "/" + escapedPath}
	}
	for clone, want := range map[string]Pages{
		"https://github.com/o/r.git":            pages("https://github.com/o/r", "blob/0123", "blame/0123", "commits/0123", "#L{line}"),
		"https://gitlab.example.org/g/s/r":      pages("https://gitlab.example.org/g/s/r", "-/blob/0123", "-/blame/0123", "-/commits/0123", "#L{line}"),
		"https://git.forgejo.dev:3000/o/r":      pages("https://git.forgejo.dev:3000/o/r", "src/commit/0123", "blame/commit/0123", "commits/commit/0123", "#L{line}"),
		"https://codeberg.org/o/r.git/":         pages("https://codeberg.org/o/r", "src/commit/0123", "blame/commit/0123", "commits/commit/0123", "#L{line}"),
		"https://bitbucket.org/o/r.git":         pages("https://bitbucket.org/o/r", "src/0123", "annotate/0123", "history-node/0123", "#lines-{line}"),
		"https://git.sr.ht/~o/r":                pages("https://git.sr.ht/~o/r", "tree/0123/item", "blame/0123", "log/0123/item", "#L{line}"),
		"https://example.org/github/r":          {Repo: "https://example.org/github/r"},
		"https://bitbucket.example.org/scm/p/r": {Repo: "https://bitbucket.example.org/projects/p/repos/r/browse", File: "https://bitbucket.example.org/projects/p/repos/r/browse/" + escapedPath + "?at=0123#{line}"},
		"git@github.com:o/r.git":                {},
		"http://github.com/o/r":                 {},
		"/srv/git/github/r":                     {},
		"javascript:alert(1)":                   {},
		"":                                      {},
	} {
		if got := PagesOf(nil, clone, linkCommit, linkPath); got != want {
			t.Errorf("%s: %+v, want %+v", clone, got, want)
		}
		if got := PagesOf(nil, clone, linkCommit, ""); got != (Pages{Repo: want.Repo}) {
			t.Errorf("a folder of %s: %+v", clone, got)
		}
	}
}

// TestPagesBySource: a source knows the software of its host by its kind, whatever its name, and its links go before that.
func TestPagesBySource(t *testing.T) {
	own := &ingestv1.Links{File: "https://cgit.example.com/{repo}/tree/{path}?id={commit}#n{line}", History: "http://cgit.example.com/{repo}/log/{path}?id={commit}"}
	sources := []*ingestv1.Source{
		{Name: "a", Kind: GitLab, Url: "https://code.example.com/lab/", Owner: "x"},
		{Name: "b", Kind: GitHub, Url: "https://hub.example.com/api/v3", Owner: "x"},
		{Name: "c", Kind: BitbucketServer, Url: "https://bb.example.com/bb", Owner: "x"},
		{Name: "d", Kind: Gerrit, Url: "http://review.example.com/r"},
		{Name: "e", Kind: Gitea, Url: "https://forge.example.com:3000", Owner: "x", CloneHosts: []string{"git.example.com"}},
		{Name: "f", Kind: Bitbucket, Owner: "x"},
		{Name: "g", Kind: Git, Url: "git@ssh.example.com:a/b.git", Links: own},
		{Name: "h", Kind: Git, Url: "https://ssh.example.com/c", Links: &ingestv1.Links{File: "https://other.example.com/{path}"}},
		{Name: "i", Kind: Git, Url: "https://quiet.example.com/a"},
		{Name: "j", Kind: GitLab, Url: "https://both.example.com", Owner: "x"},
		{Name: "k", Kind: GitLab, Url: "https://both.example.com", Owner: "y", Links: own},
		{Name: "l", Kind: Git, Url: "/srv/git/a", Links: own},
		{Name: "m", Kind: GitHub, Url: "https://api.acme.ghe.com", Owner: "x"},
	}
	for clone, want := range map[string]string{
		"https://code.example.com/lab/g/s/r.git": "https://code.example.com/lab/g/s/r/-/blob/0123/P#L{line}",
		"https://hub.example.com/x/r.git":        "https://hub.example.com/x/r/blob/0123/P#L{line}",
		"https://acme.ghe.com/x/r.git":           "https://acme.ghe.com/x/r/blob/0123/P#L{line}",
		"https://bb.example.com/bb/scm/~u/r.git": "https://bb.example.com/bb/projects/~u/repos/r/browse/P?at=0123#{line}",
		"http://review.example.com/r/x/y":        "http://review.example.com/r/plugins/gitiles/x/y/+/0123/P#{line}",
		"https://git.example.com/x/r":            "https://forge.example.com:3000/x/r/src/commit/0123/P#L{line}",
		"https://bitbucket.org/x/r":              "https://bitbucket.org/x/r/src/0123/P#lines-{line}",
		"git@ssh.example.com:a/b.git":            "https://cgit.example.com/a/b/tree/P?id=0123#n{line}",
		"git@ssh.example.com:d/'\".git":          "https://cgit.example.com/d/%27%22/tree/P?id=0123#n{line}",
		"https://ssh.example.com/c.git":          "https://other.example.com/P",
		"https://both.example.com/x/r.git":       "https://cgit.example.com/x/r/tree/P?id=0123#n{line}",
		"/srv/git/a":                             "https://cgit.example.com/srv/git/a/tree/P?id=0123#n{line}",
		"/srv/git/b":                             "",
		"https://quiet.example.com/a":            "",
		"https://elsewhere.example.com/a":        "",
	} {
		got := PagesOf(sources, clone, linkCommit, linkPath)
		if want = strings.Replace(want, "P", escapedPath, 1); got.File != want {
			t.Errorf("%s: %+v, want %s", clone, got, want)
		}
		if strings.HasPrefix(want, "https://cgit") && (got.Blame != "" || !strings.HasPrefix(got.History, "http://cgit.example.com/")) {
			t.Errorf("%s: %+v", clone, got)
		}
	}
	if got := PagesOf(sources, "https://quiet.example.com/a", linkCommit, linkPath); got.Repo != "https://quiet.example.com/a" {
		t.Errorf("%+v", got)
	}
}

// TestLinksOfAFile: a file of sources has links, which must be addresses of pages.
func TestLinksOfAFile(t *testing.T) {
	parse := func(links string) (*ingestv1.Links, error) {
		list, err := ParseSources([]byte("sources:\n  - {name: x, kind: git, url: \"https://example.com/a\", links: " + links + "}"))
		if err != nil {
			return nil, err
		}
		return list[0].GetLinks(), nil
	}
	got, err := parse(`{file: "https://dev.azure.com/{repo}?path=/{path}&version=GC{commit}&line={line}", blame: "http://a:1/{path}", history: "HTTPS://a/{path}"}`)
	if err != nil || !strings.HasSuffix(got.GetFile(), "&line={line}") || got.GetBlame() != "http://a:1/{path}" || got.GetHistory() != "HTTPS://a/{path}" {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := parse("~"); err != nil || got != nil {
		t.Errorf("%v, %v", got, err)
	}
	for template, want := range map[string]string{
		"javascript:alert(1)//{path}": "https://", "data:text/html,{path}": "https://", "//example.com/{path}": "https://", "/{path}": "https://", "https:///{path}": "https://",
		"https:{path}": "https://", "{path}": "https://", "https://{repo}/{path}": "https://", "https://a.{repo}/{path}": "", "ftp://a/{path}": "https://",
		" https://a/{path}": "a space", `https://a/{path}\n`: "a space", `https://a/{path}\u2028`: "a space", `https://a/{path}\"onclick=\"x`: "a quote", "https://a/{path}'": "a quote",
		"https://a/<b>{path}": "a quote", "https://u:p@a/{path}": "a user", "https://a/{path}{rev}": "no other braces", "https://a/{path}}": "no other braces",
		"https://a/{ path}": "a space", "https://a/": "no {path}", "": "file is missing", "https://a/{path}" + strings.Repeat("x", maxLink): "at most 1024",
	} {
		for _, key := range []string{"file", "blame"} {
			links := `{file: "https://a/{path}", ` + key + `: "` + template + `"}`
			if key == "file" {
				links = `{file: "` + template + `"}`
			}
			got, err := parse(links)
			if template == "" && key == "blame" {
				continue
			}
			if err == nil || !strings.Contains(err.Error(), want) || template != "" && !strings.Contains(err.Error(), "links: "+key) {
				t.Errorf("%s %q: %v, %v, want %q", key, template, got, err, want)
			}
		}
	}
}

// TestPagesStayAtTheHost: whatever a repo and its files are called, a link leads to the host of its template, and its values are there.
func TestPagesStayAtTheHost(t *testing.T) {
	s := &ingestv1.Source{Name: "x", Kind: Git, Url: "https://example.com/r", Links: &ingestv1.Links{
		File: "https://code.example.com/{repo}/p/{path}#{line}", Blame: "https://code.example.com/?r={repo}&p={path}&c={commit}", History: "https://code.example.com/#{path}",
	}}
	if err := CheckSource(s); err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		path := rapid.OneOf(rapid.String(), rapid.StringMatching(`[-"'<>&?#%+{}/\\.:@ \n\x00\x80line]{1,20}`)).Filter(func(p string) bool { return p != "" }).Draw(t, "path")
		got := PagesOf([]*ingestv1.Source{s}, "https://example.com/r", linkCommit, path)
		for _, address := range []string{got.File, got.Blame, got.History} {
			u, err := url.Parse(address)
			if err != nil || u.Scheme != "https" || u.Host != "code.example.com" || strings.ContainsAny(address, "\"'<>` \n\\") {
				t.Fatalf("%q: %v", address, err)
			}
		}
		file, err := url.Parse(got.File)
		if err != nil || file.Path != "/r/p/"+path || strings.Count(got.File, LinkLine) != 1 {
			t.Fatalf("the file %q is at %q: %v", path, got.File, err)
		}
		if blame, err := url.Parse(got.Blame); err != nil || blame.Query().Get("p") != path || blame.Query().Get("c") != linkCommit {
			t.Fatalf("the blame of %q is at %q: %v", path, got.Blame, err)
		}
		if history, err := url.Parse(got.History); err != nil || history.Fragment != path {
			t.Fatalf("the history of %q is at %q: %v", path, got.History, err)
		}
	})
}
