package cli

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/trawl-search/trawl/internal/testrun"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

func TestTokens(t *testing.T) {
	s := newStore(t)
	tokens := func(want int, args ...string) (out, errs string) {
		t.Helper()
		exit, out, errs := run(t, nil, slices.Concat([]string{"tokens"}, args, s.flags[1:3])...)
		if exit != want {
			t.Fatalf("tokens %v: exit %d: %s%s", args, exit, out, errs)
		}
		return out, errs
	}
	text, errs := tokens(0, "create", "--name", "ci", "--allow", "github.com/org/*,x", "--deny", "github.com/org/secret", "--scopes", "search,ingest", "--expires", "24h")
	if strings.Count(text, "\n") != 1 || !strings.HasPrefix(text, "trawl_") || strings.Contains(errs, strings.TrimSpace(text)) {
		t.Fatalf("created %q, and said %q", text, errs)
	}
	id := strings.Split(text, "_")[1]
	for _, form := range [][]string{{"list"}, {"list", "--json"}} {
		list, _ := tokens(0, form...)
		for _, want := range []string{id, "ci", "github.com/org/*", "github.com/org/secret", "ingest"} {
			if !strings.Contains(list, want) {
				t.Errorf("%q is not in the %v:\n%s", want, form, list)
			}
		}
		if strings.Contains(list, strings.TrimSpace(strings.Split(text, "_")[2])) {
			t.Error("the secret is listed")
		}
	}
	if _, errs := tokens(2, "create", "--name", "ci"); !strings.Contains(errs, "--allow sets it") { // for no repos
		t.Errorf("a token for no repos: %s", errs)
	}
	tokens(2, "create", "--name", "ci", "--allow", "**", "--scopes", "nothing") // for nothing
	tokens(2, "create", "--allow", "**")                                        // for nobody
	tokens(2, "revoke")
	tokens(1, "revoke", "nobody")
	if _, errs := tokens(1, "revoke", "ci"); !strings.Contains(errs, `"ci" is the name of the token `+id) {
		t.Errorf("by name: %s", errs)
	}
	tokens(0, "revoke", id)
	if list, _ := tokens(0, "list", "--json"); list != "" {
		t.Errorf("after it was revoked: %s", list)
	}
}

// TestTokenIsReplaced: a token that is written to a file is not printed, only its owner may read it, and it revokes
// those of its name and no others.
func TestTokenIsReplaced(t *testing.T) {
	s := newStore(t)
	file := filepath.Join(t.TempDir(), "token")
	create := func(name string, args ...string) (id string) {
		t.Helper()
		exit, out, errs := run(t, nil, slices.Concat([]string{"tokens", "create", "--name", name, "--allow", "**"}, args, s.flags[1:3])...)
		if exit != 0 {
			t.Fatalf("exit %d: %s", exit, errs)
		}
		if len(args) > 0 {
			text, err := os.ReadFile(file)
			if err != nil || out != "" {
				t.Fatalf("printed %q, %v", out, err)
			}
			out = string(text)
		}
		return strings.Split(out, "_")[1]
	}
	other := create("other")
	create("canary")
	create("canary", "--out", file, "--replace")
	last := create("canary", "--out", file, "--replace")
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	_, list, _ := run(t, nil, append([]string{"tokens", "list", "--json"}, s.flags[1:3]...)...)
	if strings.Count(list, "\n") != 2 || !strings.Contains(list, other) || !strings.Contains(list, last) {
		t.Errorf("want %s and %s only:\n%s", other, last, list)
	}
	create("canary")
	for _, args := range [][]string{{"--out", t.TempDir(), "--replace"}, {"--out", file}} {
		exit, _, errs := run(t, nil, slices.Concat([]string{"tokens", "create", "--name", "x", "--allow", "**"}, args, s.flags[1:3])...)
		if _, list, _ := run(t, nil, append([]string{"tokens", "list", "--json"}, s.flags[1:3]...)...); exit != 1 || strings.Contains(list, `"x"`) {
			t.Errorf("%s: a token that cannot be written remains: %d, %s\n%s", args, exit, errs, list)
		}
	}
	if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), last) {
		t.Errorf("a file with a token was overwritten: %q, %v", text, err)
	}
}

// TestSilentEtcd: every command that needs etcd says within seconds that there is none at its address, and where it
// may be, whether nobody listens or nobody answers.
func TestSilentEtcd(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close() // nobody accepts: connections are made, and nothing comes
	bucket := "--bucket-url=file://" + t.TempDir()
	var running sync.WaitGroup // all at once, as each waits for seconds
	defer running.Wait()
	for _, endpoint := range []string{"http://127.0.0.1:1", "http://" + silent.Addr().String()} {
		for _, args := range [][]string{
			{"tokens", "list"},
			{"tokens", "revoke", "id"},
			{"tokens", "create", "--name", "ci", "--allow", "**"},
			{"gc", bucket},
			{"gc", "--audit", bucket},
			{"restore", bucket},
			{"restore", "--dry-run", bucket},
			{"selftest", "--url", "/x", "--find", "y"},
		} {
			running.Go(func() {
				exit, out, errs := run(t, nil, append(args, "--etcd-endpoints", endpoint)...)
				if exit != 1 || out != "" || !strings.Contains(errs, "etcd at "+endpoint+" does not answer") || !strings.Contains(errs, "--etcd-endpoints") {
					t.Errorf("%v: exit %d: %s%s", args, exit, out, errs)
				}
			})
		}
	}
}

// asked is a router that records the credentials of its callers.
type asked struct {
	searchv1.UnimplementedSearchServiceServer
	shown []string
}

func (a *asked) Search(ctx context.Context, _ *searchv1.SearchRequest) (*searchv1.SearchResponse, error) {
	a.shown = metadata.ValueFromIncomingContext(ctx, "authorization")
	return oneFile(), nil
}

// TestTokenIsShown: the token comes from a file, else from the environment, and never from a flag.
func TestTokenIsShown(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv, router := grpc.NewServer(), &asked{}
	searchv1.RegisterSearchServiceServer(srv, router)
	go func() { _ = srv.Serve(l) }()
	defer srv.Stop()
	file := filepath.Join(t.TempDir(), "token")
	inFile := "trawl_" + strings.Repeat("a", 13) + "_" + strings.Repeat("b", 52)
	if err := os.WriteFile(file, []byte(inFile+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		env, args, want []string
	}{
		{nil, nil, nil},
		{[]string{"TRAWL_TOKEN=trawl_an_environment"}, nil, []string{"Bearer trawl_an_environment"}},
		{nil, []string{"--token-file", file}, []string{"Bearer " + inFile}},
		{[]string{"TRAWL_TOKEN=trawl_an_environment"}, []string{"--token-file", file}, []string{"Bearer " + inFile}},
	} {
		exit, out, errs := run(t, append(tt.env, "TRAWL_ADDR="+l.Addr().String()), append([]string{"search", "x"}, tt.args...)...)
		if exit != 0 || !slices.Equal(router.shown, tt.want) || strings.Contains(out+errs, "trawl_a") {
			t.Errorf("%v %v: exit %d, shown %q\n%s%s", tt.env, tt.args, exit, router.shown, out, errs)
		}
	}
	for _, content := range []string{"", "\x7fELF\x00", "hunter2\n", inFile + "\n" + inFile} {
		other := filepath.Join(t.TempDir(), "other")
		testrun.Must(t, os.WriteFile(other, []byte(content), 0o600))
		exit, _, errs := run(t, []string{"TRAWL_ADDR=" + l.Addr().String()}, "search", "--token-file", other, "x")
		if exit != 2 || !strings.Contains(errs, other+" holds none") || strings.Contains(errs, "hunter2") {
			t.Errorf("a file with %q: exit %d, %s", content, exit, errs)
		}
	}
	if exit, _, errs := run(t, nil, "search", "--token-file", file+"x", "x"); exit != 2 || !strings.Contains(errs, "reading the token") {
		t.Errorf("a file that is not there: exit %d, %s", exit, errs)
	}
	if exit, _, help := run(t, []string{"TRAWL_TOKEN=hunter2"}, "search", "--help"); exit != 0 || strings.Contains(help, "hunter2") {
		t.Errorf("help shows the token: %s", help)
	}
}
