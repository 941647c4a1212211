package cli

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// grouped is the file of oneFile by repo, with the symbol that the match defines.
func grouped() []*searchv1.RepoMatches {
	f := oneFile().GetFiles()[0]
	f.Repo, f.Symbols = "", []*searchv1.Symbol{{Name: "needle", Kind: searchv1.SymbolKind_SYMBOL_KIND_METHOD, Scope: "Hay\x1b"}}
	f.Chunks[0].Ranges[0].Symbol, f.Chunks[0].Ranges[0].Definition = 1, true
	return []*searchv1.RepoMatches{{Repo: "example.org/r", Files: []*searchv1.FileMatch{f}}}
}

func (s *scripted) Definitions(_ context.Context, req *searchv1.DefinitionsRequest) (*searchv1.DefinitionsResponse, error) {
	s.places = append(s.places, "definitions", req.Name, req.Query)
	if p := req.From; p != nil {
		if s.places = append(s.places, fmt.Sprintf("%s %s %d %d", p.Repo, p.Path, p.Line, p.Column)); strings.Contains(string(p.Path), ":") {
			return &searchv1.DefinitionsResponse{}, nil
		}
		if !strings.Contains(p.Repo, ":") {
			return nil, status.Error(codes.NotFound, "no such repo")
		}
	}
	answer := oneFile()
	return &searchv1.DefinitionsResponse{Repos: grouped(), Statistics: answer.Statistics, Coverage: answer.Coverage}, s.failure
}

func (s *scripted) References(_ context.Context, req *searchv1.ReferencesRequest) (*searchv1.ReferencesResponse, error) {
	s.places = append(s.places, "references", req.Name, req.Query)
	answer := oneFile()
	if req.Name == "nowhere" {
		return &searchv1.ReferencesResponse{Statistics: &searchv1.Statistics{CountsExact: true}, Coverage: answer.Coverage, Empty: &searchv1.Empty{Repos: 3}}, s.failure
	}
	return &searchv1.ReferencesResponse{Repos: grouped(), Statistics: answer.Statistics, Coverage: answer.Coverage}, s.failure
}

// TestDefFrom asks from a place. Repos and paths may hold colons.
func TestDefFrom(t *testing.T) {
	for _, tt := range []struct{ from, want string }{
		{"host:80/r:a.go:7", "host 80/r:a.go 7 0"},
		{"host:80/r:a.go:7:12", "host 80/r:a.go 7 12"},
		{"host:80/r:a.go:7:", "host 80/r:a.go 7 0"},
		{"r:a.go:7", "r a.go 7 0"},
	} {
		s := &scripted{}
		exit, _, errs := trawl(t, s, "def", "needle", "--from", tt.from)
		if got := s.places; len(got) < 4 || got[3] != tt.want {
			t.Errorf("%s: exit %d, %s, asked %q, want first %q", tt.from, exit, errs, got, tt.want)
		}
	}
	for _, from := range []string{"a.go:7", "r:a.go", "r:a.go:x"} {
		if exit, _, errs := trawl(t, &scripted{}, "def", "needle", "--from", from); exit != 2 || !strings.Contains(errs, "want REPO:PATH:LINE") {
			t.Errorf("%s: exit %d, %s", from, exit, errs)
		}
	}
}

// TestDefAndRefs prints places of a name as a search prints files.
func TestDefAndRefs(t *testing.T) {
	s := &scripted{}
	for _, command := range []string{"def", "refs"} {
		exit, out, errs := trawl(t, s, command, "--heading", "needle", "r:x", "lang:go")
		if exit != 0 || errs != "" || !strings.HasPrefix(out, "example.org/r a.go\n     3  a needle  ‹method in Hay\\x1b›\n\n1 match in 1 file, 1 of 1 shard searched") {
			t.Errorf("%s: exit %d, printed %q, %s", command, exit, out, errs)
		}
	}
	if got, want := strings.Join(s.places, ";"), "definitions;needle;r:x lang:go;references;needle;r:x lang:go"; got != want {
		t.Errorf("asked for %s, should be %s", got, want)
	}
	if exit, out, _ := trawl(t, s, "def", "--json", "needle"); exit != 0 || !strings.Contains(out, `"symbol":{"name":"needle","kind":"method","scope":"Hay\u001b"},"definition":true`) {
		t.Errorf("exit %d, printed %s", exit, out)
	}
	if exit, _, errs := trawl(t, s, "refs", "nowhere"); exit != 1 || !strings.Contains(errs, "0 matches, complete over 3 repos") {
		t.Errorf("no place: exit %d, %s", exit, errs)
	}
	if exit, _, errs := trawl(t, s, "refs"); exit != 2 || !strings.Contains(errs, "trawl refs --help") {
		t.Errorf("without a name: exit %d, %s", exit, errs)
	}
}
