package codehost

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// bitbucketServer is Bitbucket Data Center, and Server before it. The owner is the key of
// a project, or ~user for the repos of a user.
var bitbucketServer = dialect{
	first: func(s *ingestv1.Source, base string, _ bool) string {
		return base + serverAPI + url.PathEscape(s.GetOwner()) + "/repos?limit=500&start=0"
	},
	read: readBitbucketServer, authorize: bearer,
	hook: hook{signed: hubSignature("X-Hub-Signature", "sha256="), event: "X-Event-Key", push: "repo:refs_changed", read: readBitbucketServerPush},
}

// serverAPI is the path of the projects, below the address of the host.
const serverAPI = "/rest/api/1.0/projects/"

// serverRepo is a repo in lists and in webhooks.
type serverRepo struct {
	ID      int64  `json:"id"`
	Slug    string `json:"slug"`
	Project struct {
		Key    string `json:"key"`
		Public bool   `json:"public"`
	} `json:"project"`
	// Archived is present since version 8.
	Archived bool            `json:"archived"`
	Public   bool            `json:"public"`
	Origin   json.RawMessage `json:"origin"`
}

func (r serverRepo) path() string { return strings.ToLower(r.Project.Key) + "/" + r.Slug }

// cloneURL is the repo's clone URL at the host with the address base. It is not taken
// from the links in lists: some versions put a user into them, and webhooks have no
// links.
func (r serverRepo) cloneURL(base *url.URL) string {
	return base.JoinPath("scm", r.path()+".git").String()
}

func readBitbucketServer(body []byte, at *url.URL, _ http.Header) (page, error) {
	var list struct {
		Values entries[serverRepo] `json:"values"`
		Last   *bool               `json:"isLastPage"`
		Next   *int64              `json:"nextPageStart"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return page{}, err
	}
	if list.Last == nil || !*list.Last && list.Next == nil {
		return page{}, errors.New("a page that does not say whether it is the last")
	}
	if list.Values == nil {
		return page{}, errNoList
	}
	answer := page{fixed: true}
	if !*list.Last {
		next := *at
		query := next.Query()
		query.Set("start", strconv.FormatInt(*list.Next, 10))
		next.RawQuery = query.Encode()
		answer.next = next.String()
	}
	root, _, _ := strings.Cut(at.Path, serverAPI)
	base := &url.URL{Scheme: at.Scheme, Host: at.Host, Path: root + "/"}
	for _, r := range list.Values {
		answer.repos = append(answer.repos, Repo{
			ID: number(r.ID), Path: r.path(), CloneURL: r.cloneURL(base), Archived: r.Archived,
			Fork: len(r.Origin) > 0 && string(r.Origin) != "null", Public: r.Public || r.Project.Public,
		})
	}
	return answer, nil
}

func readBitbucketServerPush(body []byte, s *ingestv1.Source) (Push, error) {
	var event struct {
		Repository serverRepo `json:"repository"`
		Changes    []struct {
			Ref struct {
				ID   string `json:"id"`
				Type string `json:"type"`
			} `json:"ref"`
			To string `json:"toHash"` // zeros: the branch was deleted
		} `json:"changes"`
	}
	if err := json.Unmarshal(body, &event); err != nil {
		return Push{}, err
	}
	base, err := url.Parse(BaseURL(s))
	if err != nil || event.Repository.Slug == "" || event.Repository.Project.Key == "" {
		return Push{}, errors.New("it names no repo")
	}
	push := Push{CloneURL: event.Repository.cloneURL(base), Branches: map[string]string{}}
	for _, change := range event.Changes {
		if branch, ok := strings.CutPrefix(change.Ref.ID, "refs/heads/"); ok {
			push.Branches[branch] = change.To
		}
	}
	if len(push.Branches) == 0 {
		return Push{}, errors.New("the push is not to a branch")
	}
	return push, nil
}
