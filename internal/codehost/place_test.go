package codehost

import (
	"testing"

	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// TestSourcesBringTheirOwnRepos: if a host lists clone URLs of other hosts, they are not
// fetched with the others' credentials, and the source cannot claim their names.
func TestSourcesBringTheirOwnRepos(t *testing.T) {
	for _, c := range []struct {
		kind, url   string
		hosts       []string
		good, wrong []string
	}{
		{GitHub, "", nil, []string{"https://github.com/acme/a.git", "https://GitHub.com:443/acme/a"}, []string{
			"https://gitlab.com/acme/a", "https://api.github.com/acme/a", "https://github.com.evil.org/acme/a", "https://github.com:8443/acme/a",
			"http://github.com/acme/a", "ssh://git@github.com/acme/a", "git@github.com:acme/a", "git://github.com/acme/a",
			"/srv/git/a", "file:///srv/git/a", "https://evilgithub.com/a/b", "", "https://u:p@github.com/a/b",
		}},
		{GitHub, "https://ghe.example.com/api/v3", nil, []string{"https://ghe.example.com/acme/a.git"}, []string{"https://github.com/acme/a"}},
		{GitHub, "https://api.acme.ghe.com", nil, []string{"https://acme.ghe.com/acme/a.git"}, []string{"https://other.ghe.com/acme/a.git"}},
		{GitLab, "", nil, []string{"https://gitlab.com/acme/a.git"}, []string{"https://github.com/acme/a"}},
		{GitLab, "https://example.com/gitlab/", nil, []string{"https://example.com/gitlab/acme/a.git"}, []string{
			"https://example.com/other/a", "https://example.com/gitlab2/a", "https://api.example.com/gitlab/acme/a",
		}},
		{GitLab, "http://10.0.0.1:8080", []string{"Git.example.com", "old.example.com:8443"}, []string{
			"http://10.0.0.1:8080/a/b", "https://10.0.0.1:8080/a/b", "https://git.example.com/a/b", "https://old.example.com:8443/a/b", "http://git.example.com/a/b",
		}, []string{"http://10.0.0.1/a/b", "https://git.example.com:8443/a/b", "https://old.example.com/a/b", "ssh://git@git.example.com/a/b"}},
		{Bitbucket, "", nil, []string{"https://bitbucket.org/acme/a"}, []string{"https://github.com/acme/a"}},
		{BitbucketServer, "https://example.com/bb", nil, []string{"https://example.com/bb/scm/acme/a.git"}, []string{"https://example.com/scm/acme/a.git"}},
		{Gerrit, "https://example.com/r", nil, []string{"https://example.com/r/a"}, []string{"https://example.com/a", "https://example.org/r/a"}},
		{Git, "https://example.com/a", nil, []string{"https://example.com/a"}, nil},
	} {
		s := &ingestv1.Source{Kind: c.kind, Url: c.url, CloneHosts: c.hosts}
		for _, url := range c.good {
			if err := CheckClone(s, url); err != nil {
				t.Errorf("%s at %q, %s: %v", c.kind, c.url, url, err)
			}
		}
		for _, url := range c.wrong {
			if CheckClone(s, url) == nil {
				t.Errorf("%s at %q brings %s", c.kind, c.url, url)
			}
		}
	}
}

// TestListsAreOfTheirHost: the clone URLs that supported hosts list count as theirs.
func TestListsAreOfTheirHost(t *testing.T) {
	eachHost(t, 3, func(t *testing.T, f *fake) {
		repos, err := f.client(t).List(t.Context(), f.source())
		if err != nil || len(repos) != 3 {
			t.Fatalf("%v, %v", repos, err)
		}
		for _, r := range repos {
			if err := CheckClone(f.source(), r.CloneURL); err != nil {
				t.Errorf("%s: %v", r.CloneURL, err)
			}
		}
	})
}

func TestCloneHosts(t *testing.T) {
	s := &ingestv1.Source{Name: "x", Kind: Gitea, Url: "https://git.example.com", Owner: "acme"}
	for entry, want := range map[string]bool{
		"git.example.org": true, "git.example.org:8443": true, "[2606:4700::1]:3000": true,
		"": false, "https://git.example.org": false, "git.example.org/x": false, "u@git.example.org": false, "*.example.org": false, "a:0": false,
	} {
		if s.CloneHosts = []string{entry}; (CheckSource(s) == nil) != want {
			t.Errorf("%q: %v", entry, CheckSource(s))
		}
	}
	if s = (&ingestv1.Source{Name: "x", Kind: Git, Url: "https://git.example.com/a", CloneHosts: []string{"b.example.com"}}); CheckSource(s) == nil {
		t.Error("a single URL has other hosts")
	}
}
