package searchapi_test

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// detail finds the detail of one type in a status.
func detail[T proto.Message](t *testing.T, err error) (found T) {
	t.Helper()
	for _, d := range status.Convert(err).Details() {
		if m, ok := d.(T); ok {
			return m
		}
	}
	t.Fatalf("no such detail in %v", err)
	return found
}

func TestQueryErrorsSayWhere(t *testing.T) {
	_, err := searchapi.Parse("foo (bar", 1)
	if status.Code(err) != codes.InvalidArgument {
		t.Fatalf("got %v", err)
	}
	if d := detail[*searchv1.QueryError](t, err); d.Expected == "" || d.Found == "" {
		t.Errorf("detail says too little: %v", d)
	}
	if f := detail[*errdetails.BadRequest](t, err).FieldViolations; f[0].Field != "query" {
		t.Errorf("field is %q", f[0].Field)
	}
	_, err = searchapi.Parse(strings.Repeat("a ", 5000), 1)
	if d := detail[*searchv1.QueryError](t, err); d.Limit == "" {
		t.Errorf("the limit is not named: %v", err)
	}
}

func TestLanguagesByAlias(t *testing.T) {
	q, err := searchapi.Parse("lang:golang", 1)
	if err != nil {
		t.Fatal(err)
	}
	if l, ok := q.(*query.Language); !ok || l.Name != "Go" {
		t.Errorf("got %v", q)
	}
}

func TestIncompleteFitsInAHeader(t *testing.T) {
	c := &searchv1.Coverage{Requested: 1000, Failed: 1000}
	for i := range 1000 {
		d := searchapi.Digest{byte(i), byte(i >> 8)}
		c.Uncovered = append(c.Uncovered, &searchv1.UncoveredShard{Digest: d[:], Message: "gone", Repos: []string{"a/rather/long/name"}})
	}
	err := searchapi.Incomplete(c)
	got := detail[*searchv1.Coverage](t, err)
	if proto.Size(got) > 4<<10 || len(got.Uncovered) == 0 || got.Failed != 1000 {
		t.Errorf("%d bytes with %d shards named", proto.Size(got), len(got.Uncovered))
	}
	if len(c.Uncovered) != 1000 {
		t.Error("the coverage itself was cut")
	}
	late := &searchv1.Coverage{Requested: 1, NotReached: 1}
	if code := status.Code(searchapi.Incomplete(late)); code != codes.DeadlineExceeded {
		t.Errorf("only the deadline was missed, and the code is %s", code)
	}
}

func TestResolveTakesNamesInOrder(t *testing.T) {
	q, err := searchapi.Parse("(type:repo aaa) (type:repo bbb)", 1)
	if err != nil {
		t.Fatal(err)
	}
	resolved, next, err := searchapi.Resolve(q, nil)
	if err != nil || resolved != nil || next == nil || !strings.Contains(next.String(), "aaa") {
		t.Fatalf("with no names: %v, next %v, %v", resolved, next, err)
	}
	names := []*searchv1.RepoNames{{Names: []string{"r1"}}}
	if _, next, _ = searchapi.Resolve(q, names); next == nil || !strings.Contains(next.String(), "bbb") {
		t.Fatalf("with one: next %v", next)
	}
	names = append(names, &searchv1.RepoNames{Names: []string{"r2"}})
	if resolved, next, err = searchapi.Resolve(q, names); err != nil || next != nil || resolved == nil {
		t.Fatalf("with both: %v %v %v", resolved, next, err)
	}
	if _, _, err = searchapi.Resolve(q, append(names, names...)); err == nil {
		t.Error("a plan with too many names was taken")
	}
}

func TestNotFoundNamesTheNearest(t *testing.T) {
	long := strings.Repeat("x", 1000)
	for _, tt := range []struct {
		branch, elsewhere string
		nearest           []string
		want              string
		detail            []string
	}{
		{"", "", nil, `path: no file "a.go" in host/pond on any branch`, nil},
		{"main", "", []string{"b.go", long, "\xff\x1b"}, `path: no file "a.go" in host/pond on branch "main"; the nearest: "b.go", "\xff\x1b"`, []string{"b.go", "\ufffd\x1b"}},
		{"main", "dev", nil, `path: no file "a.go" in host/pond on branch "main", but on branch "dev"`, nil},
		{"", "", []string{"a.go/"}, `path: no file "a.go" in host/pond on any branch, but a folder; the nearest: "a.go/"`, []string{"a.go/"}},
	} {
		err := searchapi.FileNotFound(&searchv1.GetFileRequest{Repo: "host/pond", Path: []byte("a.go"), Branch: tt.branch}, tt.elsewhere, tt.nearest)
		d := searchapi.NotFoundOf(err)
		if s := status.Convert(err); s.Code() != codes.NotFound || s.Message() != tt.want || searchapi.FieldOf(err) != "path" || d.GetField() != "path" || !slices.Equal(d.GetNearest(), tt.detail) {
			t.Errorf("%v, %v, want %s", err, d, tt.want)
		}
	}
	for _, tt := range []struct {
		path, folder, file string
		nearest            []string
	}{
		{"go.mod", `no folder "go.mod" in r on branch "main", but a file; the nearest: "go.sum"`, `no file "go.mod" in r on any branch; the nearest: "go.sum"`, []string{"go.mod", "go.sum"}},
		{"go.mod/", `no folder "go.mod/" in r on branch "main", but a file; the nearest: "go.mod"`, `no file "go.mod/" in r on any branch; the nearest: "go.mod"`, []string{"go.mod"}},
		{"internal", `no folder "internal" in r on branch "main"; the nearest: "internal/"`, `no file "internal" in r on any branch, but a folder; the nearest: "internal/"`, []string{"internal/"}},
		{"internal/", `no folder "internal/" in r on branch "main"`, `no file "internal/" in r on any branch, but a folder`, []string{"internal/"}},
		{"./a//b/", `no folder "./a//b/" in r on branch "main"; the nearest: "a/b/"`, `no file "./a//b/" in r on any branch, but a folder; the nearest: "a/b/"`, []string{"a/b/"}},
	} {
		folder := searchapi.FolderNotFound(&searchv1.ListTreeRequest{Repo: "r", Path: []byte(tt.path)}, "main", tt.nearest)
		file := searchapi.FileNotFound(&searchv1.GetFileRequest{Repo: "r", Path: []byte(tt.path)}, "", tt.nearest)
		if got := status.Convert(folder).Message(); got != "path: "+tt.folder {
			t.Errorf("folder %s: %s, want %s", tt.path, got, tt.folder)
		}
		if got := status.Convert(file).Message(); got != "path: "+tt.file {
			t.Errorf("file %s: %s, want %s", tt.path, got, tt.file)
		}
	}
	err := searchapi.FolderNotFound(&searchv1.ListTreeRequest{Repo: "host/pond", Path: []byte(long)}, "main", []string{long[:250], long[:251], long[:252]})
	if raw, _ := proto.Marshal(status.Convert(err).Proto()); len(raw) > 6<<10 {
		t.Errorf("an error of %d bytes", len(raw))
	}
	if d := searchapi.NotFoundOf(searchapi.FieldError(codes.NotFound, "path", "no")); d != nil {
		t.Errorf("another error has %v", d)
	}
}
