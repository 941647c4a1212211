package codehost

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/trawl-search/trawl/internal/config"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// FuzzRead feeds hosts' answers and webhooks to every dialect: none crashes the
// process, and every push that is read has a repo.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		`[{"id":1,"full_name":"a/b","clone_url":"https://h/a/b.git"}]`, `{"values":[{"full_name":"a/b"}],"next":"https://h/2"}`,
		")]}'\n" + `{"a":{"state":"ACTIVE","_more_projects":true}}`, `{"ref":"refs/heads/main","after":"c","repository":{"clone_url":"u"}}`,
		`{"push":{"changes":[{"new":{"type":"branch","name":"m","target":{"hash":"c"}}}]}}`,
		`{"type":"ref-updated","refUpdate":{"project":"p","refName":"refs/heads/main"}}`, `null`, `[null]`, `{"a":null}`,
	} {
		f.Add([]byte(seed), `<https://h/2>; rel="next"`)
	}
	at, err := url.Parse("https://git.example.com/a/projects/?n=500&S=0")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, body []byte, link string) {
		for kind, d := range dialects {
			_, _ = d.read(body, at, http.Header{"Link": {link}})
			s := &ingestv1.Source{Kind: kind, Url: "https://git.example.com"}
			if push, err := d.hook.read(body, s); err == nil && kind == Gerrit && push.CloneURL == "" {
				t.Errorf("%s: a push to no repo: %s", kind, body)
			}
			if _, err := ReadHook(s, http.Header{}, body, config.Secret("x")); err == nil {
				t.Errorf("%s: unsigned, and taken: %s", kind, body)
			}
		}
	})
}
