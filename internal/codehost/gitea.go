package codehost

import (
	"net/http"

	"github.com/trawl-search/trawl/internal/config"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// gitea is Gitea and Forgejo, whose repos look like GitHub's.
var gitea = dialect{
	first: func(s *ingestv1.Source, base string, _ bool) string {
		return base + "/api/v1" + ownerPath(s, "/users/", "/orgs/") + "/repos?limit=50&page=1"
	},
	read: readHub(0), // its administrator may have bounded pages to fewer than 50
	authorize: func(r *http.Request, _ string, token config.Secret) {
		r.Header.Set("Authorization", "token "+string(token))
	},
	hook: hook{signed: hubSignature("X-Gitea-Signature", ""), event: "X-Gitea-Event", push: "push", read: readPush},
}
