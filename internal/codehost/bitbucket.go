package codehost

import (
	"encoding/json"
	"net/http"
	"net/url"

	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// bitbucket is Bitbucket Cloud. It has no archived repos.
var bitbucket = dialect{
	first: func(s *ingestv1.Source, base string, _ bool) string {
		return base + "/2.0/repositories/" + url.PathEscape(s.GetOwner()) + "?pagelen=100&sort=created_on"
	},
	read: readBitbucket, authorize: bearer,
	hook: hook{signed: hubSignature("X-Hub-Signature", "sha256="), event: "X-Event-Key", push: "repo:push", read: readBitbucketPush},
}

// bitbucketRepo is a repo in lists and in webhooks.
type bitbucketRepo struct {
	UUID     string          `json:"uuid"`
	FullName string          `json:"full_name"`
	Private  bool            `json:"is_private"`
	Parent   json.RawMessage `json:"parent"`
	Links    struct {
		// HTML is also the URL to clone from; the link named clone contains a user.
		HTML struct {
			Href string `json:"href"`
		} `json:"html"`
	} `json:"links"`
}

func readBitbucket(body []byte, _ *url.URL, _ http.Header) (page, error) {
	var list struct {
		Values entries[bitbucketRepo] `json:"values"`
		Next   string                 `json:"next"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return page{}, err
	}
	if list.Values == nil {
		return page{}, errNoList
	}
	answer := page{next: list.Next, fixed: true}
	for _, r := range list.Values {
		answer.repos = append(answer.repos, Repo{
			ID: r.UUID, Path: r.FullName, CloneURL: r.Links.HTML.Href, Public: !r.Private,
			Fork: len(r.Parent) > 0 && string(r.Parent) != "null",
		})
	}
	return answer, nil
}
