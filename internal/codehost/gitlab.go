package codehost

import (
	"encoding/json"
	"net/http"
	"net/url"

	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

var gitlab = dialect{
	first: func(s *ingestv1.Source, base string, _ bool) string {
		if s.GetUser() {
			return base + "/api/v4/users/" + url.PathEscape(s.GetOwner()) + "/projects?per_page=100&order_by=id&sort=asc"
		}
		return base + "/api/v4/groups/" + url.PathEscape(s.GetOwner()) +
			"/projects?include_subgroups=true&with_shared=false&per_page=100&order_by=id&sort=asc"
	},
	read: readGitLab, authorize: bearer,
	hook: hook{signed: sharedToken("X-Gitlab-Token"), event: "X-Gitlab-Event", push: "Push Hook", read: readPush},
}

func readGitLab(body []byte, at *url.URL, header http.Header) (page, error) {
	var list entries[struct {
		ID         int64           `json:"id"`
		Path       string          `json:"path_with_namespace"`
		URL        string          `json:"http_url_to_repo"`
		Archived   bool            `json:"archived"`
		Empty      bool            `json:"empty_repo"`
		Visibility string          `json:"visibility"`
		ForkedFrom json.RawMessage `json:"forked_from_project"`
	}]
	if err := json.Unmarshal(body, &list); err != nil {
		return page{}, err
	}
	answer := page{next: nextLink(header, at), fixed: len(list) < hubPage}
	for _, r := range list {
		if r.Empty {
			continue
		}
		answer.repos = append(answer.repos, Repo{
			ID: number(r.ID), Path: r.Path, CloneURL: r.URL, Archived: r.Archived, Public: r.Visibility == "public",
			Fork: len(r.ForkedFrom) > 0 && string(r.ForkedFrom) != "null",
		})
	}
	return answer, nil
}
