package cli

import (
	"context"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"

	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// harbour has two repos, and folders in one of them.
type harbour struct {
	searchv1.UnimplementedSearchServiceServer
}

func (*harbour) List(context.Context, *searchv1.ListRequest) (*searchv1.ListResponse, error) {
	return &searchv1.ListResponse{Repos: []*searchv1.RepoEntry{
		{Name: "host/pond", Branches: []*searchv1.BranchEntry{{Name: "main"}, {Name: "release/1"}}, Languages: []*searchv1.LanguageShare{{Language: "Go"}}},
		{Name: "host/port", Branches: []*searchv1.BranchEntry{{Name: "main"}}, Languages: []*searchv1.LanguageShare{{Language: "Go"}, {Language: "Rust"}}},
	}}, nil
}

func (*harbour) ListTree(_ context.Context, req *searchv1.ListTreeRequest) (*searchv1.ListTreeResponse, error) {
	if req.GetRepo() != "host/pond" {
		return nil, noRepo(req.GetRepo())
	}
	folder := string(req.GetPath())
	return &searchv1.ListTreeResponse{Entries: []*searchv1.TreeEntry{{Path: []byte(folder + "fish.go")}, {Path: []byte(folder + "frogs/")}}}, nil
}

// TestNamesAreCompleted: a shell offers the names of repos, branches, languages and files where a command takes them, and nothing where the
// router knows none.
func TestNamesAreCompleted(t *testing.T) {
	for typed, want := range map[string]string{
		"cat host/p":                "host/pond: host/port:",
		"cat host/pond:":            "host/pond:fish.go host/pond:frogs/",
		"cat a:b host/pond:x/f":     "host/pond:x/fish.go host/pond:x/frogs/",
		"cat nothing:":              "",
		"open host/po":              "host/pond: host/port:",
		"delete host/pon":           "host/pond",
		"repos status host/por":     "host/port",
		"repos reindex a host/":     "host/pond host/port",
		"search -r host":            "host/pond host/port",
		"search -b r":               "release/1",
		"search -t ":                "go rust",
		"search -T R":               "Rust",
		"search TODO r:host/pon":    "r:host/pond",
		"search -lang:g":            "",
		"search -- -lang:g":         "-lang:go",
		"search TODO lang:":         "lang:go lang:rust",
		"search plain":              "",
		"def Fish branch:m":         "branch:main",
		"refs --branch x":           "",
		"search --no-such-flag r:h": "",
	} {
		args := append([]string{"__complete"}, strings.Split(typed, " ")...)
		exit, out, errs := serveAndRun(t, func(srv *grpc.Server) { searchv1.RegisterSearchServiceServer(srv, &harbour{}) }, args...)
		lines := strings.Split(out, "\n")
		end := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, ":") })
		if end < 0 {
			t.Errorf("%q: exit %d, printed %q: %s", typed, exit, out, errs)
		} else if got := strings.Join(lines[:end], " "); exit != 0 || got != want {
			t.Errorf("%q: offered %q, want %q (exit %d)\n%s", typed, got, want, exit, errs)
		}
	}
	if exit, out, _ := run(t, nil, "__complete", "cat", "--addr", "127.0.0.1:1", "host"); exit != 0 || strings.Contains(out, "host") {
		t.Errorf("without a router: exit %d, offered %q", exit, out)
	}
}
