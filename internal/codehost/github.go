package codehost

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"

	"github.com/trawl-search/trawl/internal/config"
	"github.com/trawl-search/trawl/internal/lazyregexp"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

var github = dialect{
	first: func(s *ingestv1.Source, base string, _ bool) string {
		return base + ownerPath(s, "/users/", "/orgs/") + "/repos?per_page=100&sort=full_name"
	},
	read: readHub(hubPage), authorize: bearer,
	hook: hook{signed: hubSignature("X-Hub-Signature-256", "sha256="), event: "X-Github-Event", push: "push", read: readPush},
}

// ownerPath returns the path of a user or an organisation.
func ownerPath(s *ingestv1.Source, user, org string) string {
	if s.GetUser() {
		return user + url.PathEscape(s.GetOwner())
	}
	return org + url.PathEscape(s.GetOwner())
}

func bearer(r *http.Request, username string, token config.Secret) {
	if username != "" {
		r.SetBasicAuth(username, string(token))
		return
	}
	r.Header.Set("Authorization", "Bearer "+string(token))
}

// hubPage is the number of repos on a page of GitHub and of GitLab.
const hubPage = 100

// githubRepo is a repo as GitHub, Gitea and Forgejo list it.
type githubRepo struct {
	ID       int64  `json:"id"`
	FullName string `json:"full_name"`
	CloneURL string `json:"clone_url"`
	Archived bool   `json:"archived"`
	Fork     bool   `json:"fork"`
	Private  bool   `json:"private"`
	// Empty is sent by Gitea for a repo without commits.
	Empty bool `json:"empty"`
}

// readHub returns the function that reads the pages of a host. Full is how many repos each page but the last has; 0 if that is unknown.
func readHub(full int) func([]byte, *url.URL, http.Header) (page, error) {
	return func(body []byte, at *url.URL, header http.Header) (page, error) {
		var list entries[githubRepo]
		if err := json.Unmarshal(body, &list); err != nil {
			return page{}, err
		}
		answer := page{next: nextLink(header, at), fixed: len(list) < full}
		for _, r := range list {
			if r.Empty {
				continue
			}
			answer.repos = append(answer.repos, Repo{
				ID: number(r.ID), Path: r.FullName, CloneURL: r.CloneURL, Archived: r.Archived, Fork: r.Fork, Public: !r.Private,
			})
		}
		return answer, nil
	}
}

// number is the text of an id, "" if the host gave none: repos without one are not all the same.
func number(id int64) string {
	if id == 0 {
		return ""
	}
	return strconv.FormatInt(id, 10)
}

var link = lazyregexp.New(`<([^<>]*)>\s*;[^<]*\brel="?next"?`)

// nextLink finds the next page in the header Link (RFC 8288).
func nextLink(header http.Header, at *url.URL) string {
	for _, value := range header.Values("Link") {
		if m := link().FindStringSubmatch(value); m != nil {
			if next, err := at.Parse(m[1]); err == nil {
				return next.String()
			}
		}
	}
	return ""
}
