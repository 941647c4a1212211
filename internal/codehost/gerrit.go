package codehost

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/trawl-search/trawl/internal/config"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// gerritPage is the number of projects on a page.
const gerritPage = 500

// gerritOwn are projects that hold Gerrit's own settings.
var gerritOwn = []string{"All-Projects", "All-Users"}

var gerrit = dialect{
	first: func(s *ingestv1.Source, base string, known bool) string {
		if known {
			base += "/a"
		}
		query := url.Values{"n": {strconv.Itoa(gerritPage)}, "S": {"0"}}
		if s.GetOwner() != "" {
			query.Set("p", s.GetOwner())
		}
		return base + "/projects/?" + query.Encode()
	},
	read: readGerrit,
	authorize: func(r *http.Request, username string, token config.Secret) {
		r.SetBasicAuth(username, string(token))
	},
	hook: hook{signed: gerritToken, read: readGerritPush},
}

// gerritToken verifies the secret in a header, or as a password, since the URL that
// Gerrit calls can hold one.
func gerritToken(h http.Header, mac []byte, secret config.Secret) bool {
	_, password, basic := (&http.Request{Header: h}).BasicAuth()
	if basic {
		h = http.Header{tokenHeader: {password}}
	}
	return sharedToken(tokenHeader)(h, mac, secret)
}

// tokenHeader holds the secret of webhooks of hosts that have no header for it.
const tokenHeader = "X-Trawl-Token"

// gerritProjects are the projects of a page, in its order.
type gerritProjects []gerritProject

type gerritProject struct {
	name  string
	State string `json:"state"`
	More  bool   `json:"_more_projects"`
}

// UnmarshalJSON implements json.Unmarshaler.
func (p *gerritProjects) UnmarshalJSON(data []byte) error {
	return each(data, '{', func(d *json.Decoder) error {
		key, err := d.Token()
		one := gerritProject{name: fmt.Sprint(key)}
		err = errors.Join(err, d.Decode(&one))
		*p = append(*p, one)
		return err
	})
}

// readGerrit reads a page of projects, which starts with a prefix against cross-site
// script inclusion. Gerrit identifies projects by name only.
func readGerrit(body []byte, at *url.URL, _ http.Header) (page, error) {
	var projects gerritProjects
	if err := json.Unmarshal(bytes.TrimPrefix(body, []byte(")]}'")), &projects); err != nil {
		return page{}, err
	}
	answer := page{fixed: true}
	base, _, _ := strings.Cut(at.Path, "/projects/")
	root := url.URL{Scheme: at.Scheme, Host: at.Host, Path: strings.TrimSuffix(base, "/a")}
	for _, p := range projects {
		if p.State != "HIDDEN" && !slices.Contains(gerritOwn, p.name) {
			answer.repos = append(answer.repos, Repo{Path: p.name, CloneURL: root.JoinPath(p.name).String(), Archived: p.State == "READ_ONLY"})
		}
	}
	if !slices.ContainsFunc(projects, func(p gerritProject) bool { return p.More }) {
		return answer, nil
	}
	query := at.Query()
	start, err := strconv.Atoi(query.Get("S"))
	if err != nil { // after a redirect that dropped the query
		return page{}, err
	}
	query.Set("S", strconv.Itoa(start+len(projects)))
	next := *at
	next.RawQuery = query.Encode()
	answer.next = next.String()
	return answer, nil
}
