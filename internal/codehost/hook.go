package codehost

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/trawl-search/trawl/internal/config"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// Push is a push to a repo, as its host announced it.
type Push struct {
	// CloneURL is the repo's clone URL, as in a list.
	CloneURL string
	// Branches maps pushed branches to their new commits; empty if the host named none.
	Branches map[string]string
}

// hook is the signature and form of a host's webhooks.
type hook struct {
	// signed verifies the proof in the header: the HMAC-SHA256 of the body, or for hosts that
	// send it, the secret itself.
	signed func(h http.Header, mac []byte, secret config.Secret) bool
	// event is the header with the kind of event, push its value for pushes.
	event, push string
	read        func(body []byte, s *ingestv1.Source) (Push, error)
}

// ErrForged is the error for a webhook without a valid signature.
var ErrForged = errors.New("the webhook is not signed with the source's secret")

// ErrNoPush is the error for a webhook that announces no push to a branch.
var ErrNoPush = errors.New("the webhook does not report a push to a branch")

// ReadHook decodes a webhook of a source. It verifies the signature before it reads
// anything else. Without a secret, and from no source, every webhook is forged; to find
// that out takes as long as with one. Errors are ErrForged and ErrNoPush.
func ReadHook(s *ingestv1.Source, h http.Header, body []byte, secret config.Secret) (Push, error) {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	host, ok := dialects[s.GetKind()]
	if !ok || secret == "" || !host.hook.signed(h, mac.Sum(nil), secret) {
		return Push{}, ErrForged
	}
	if host.hook.event != "" && h.Get(host.hook.event) != host.hook.push {
		return Push{}, ErrNoPush
	}
	push, err := host.hook.read(body, s)
	if err != nil {
		return Push{}, errors.Join(ErrNoPush, err)
	}
	return push, nil
}

// hubSignature verifies an HMAC-SHA256 in a header.
func hubSignature(header, prefix string) func(http.Header, []byte, config.Secret) bool {
	return func(h http.Header, mac []byte, _ config.Secret) bool {
		text, ok := strings.CutPrefix(h.Get(header), prefix)
		shown, err := hex.DecodeString(text)
		return ok && err == nil && hmac.Equal(shown, mac)
	}
}

// sharedToken verifies the secret itself in a header.
func sharedToken(header string) func(http.Header, []byte, config.Secret) bool {
	return func(h http.Header, _ []byte, secret config.Secret) bool {
		shown, want := sha256.Sum256([]byte(h.Get(header))), sha256.Sum256([]byte(secret))
		return subtle.ConstantTimeCompare(shown[:], want[:]) == 1
	}
}

// readPush reads the push of GitHub, Gitea and GitLab, which differ in where the
// repo's URL is.
func readPush(body []byte, _ *ingestv1.Source) (Push, error) {
	var event struct {
		Ref        string `json:"ref"`
		After      string `json:"after"`
		Repository struct {
			CloneURL string `json:"clone_url"`
		} `json:"repository"`
		Project struct {
			URL string `json:"git_http_url"`
		} `json:"project"`
	}
	if err := json.Unmarshal(body, &event); err != nil {
		return Push{}, err
	}
	branch, ok := strings.CutPrefix(event.Ref, "refs/heads/")
	if !ok {
		return Push{}, errors.New("the push is not to a branch")
	}
	address := cmp.Or(event.Repository.CloneURL, event.Project.URL)
	return Push{CloneURL: address, Branches: map[string]string{branch: event.After}}, nil
}

func readBitbucketPush(body []byte, _ *ingestv1.Source) (Push, error) {
	var event struct {
		Repository bitbucketRepo `json:"repository"`
		Push       struct {
			Changes []struct {
				New *struct {
					Type   string `json:"type"`
					Name   string `json:"name"`
					Target struct {
						Hash string `json:"hash"`
					} `json:"target"`
				} `json:"new"`
			} `json:"changes"`
		} `json:"push"`
	}
	if err := json.Unmarshal(body, &event); err != nil {
		return Push{}, err
	}
	push := Push{CloneURL: event.Repository.Links.HTML.Href, Branches: map[string]string{}}
	for _, change := range event.Push.Changes {
		switch {
		case change.New == nil: // a branch was deleted; its name does not matter
			push.Branches = nil
			return push, nil
		case change.New.Type == "branch":
			push.Branches[change.New.Name] = change.New.Target.Hash
		}
	}
	if len(push.Branches) == 0 {
		return Push{}, errors.New("the push is not to a branch")
	}
	return push, nil
}

// readGerritPush reads the event ref-updated of Gerrit's webhooks plugin.
func readGerritPush(body []byte, s *ingestv1.Source) (Push, error) {
	var event struct {
		Type   string `json:"type"`
		Update struct {
			Project string `json:"project"`
			Ref     string `json:"refName"`
			New     string `json:"newRev"`
		} `json:"refUpdate"`
	}
	if err := json.Unmarshal(body, &event); err != nil {
		return Push{}, err
	}
	base, err := url.Parse(BaseURL(s))
	branch, ok := strings.CutPrefix(event.Update.Ref, "refs/heads/")
	if !ok {
		branch = event.Update.Ref // older versions leave refs/heads/ out
	}
	if event.Type != "ref-updated" || event.Update.Project == "" || err != nil || strings.HasPrefix(branch, "refs/") {
		return Push{}, errors.New("it names no branch")
	}
	return Push{CloneURL: base.JoinPath(event.Update.Project).String(), Branches: map[string]string{branch: event.Update.New}}, nil
}
