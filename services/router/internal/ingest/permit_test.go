package ingest_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/internal/access"
	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/catalog/etcdtest"
	"github.com/trawl-search/trawl/internal/gitsource/origin"
	"github.com/trawl-search/trawl/internal/queue"
	"github.com/trawl-search/trawl/internal/searchapi"
	"github.com/trawl-search/trawl/internal/testrun"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
	"github.com/trawl-search/trawl/services/router/internal/ingest"
)

// accepting is a queue that takes every job.
type accepting struct{ letters }

func (accepting) Publish(context.Context, queue.Job) error { return nil }

// noting is a queue that remembers the jobs.
type noting struct {
	letters
	jobs []queue.Job
}

func (n *noting) Publish(_ context.Context, job queue.Job) error {
	n.jobs = append(n.jobs, job)
	return nil
}

// TestNewReposAreBulk: many repos that are added at once do not hold up those that are indexed again.
func TestNewReposAreBulk(t *testing.T) {
	store, jobs := catalog.New(etcdtest.New().Client(nil), ""), &noting{letters: letters{t: t}}
	policy := origin.Policy{Schemes: []string{"https"}}
	service := ingest.New(store, jobs, ingest.Config{Policy: policy, PerMinute: perMinute, Admit: everybody}, space(store), nil, slog.New(slog.DiscardHandler))
	ctx := access.With(t.Context(), access.Anyone)
	for _, url := range []string{"https://git.example.com/a", "https://git.example.com/b", "https://git.example.com/a"} {
		if _, err := service.PutRepo(ctx, &ingestv1.PutRepoRequest{Url: url}); err != nil {
			t.Fatal(err)
		}
	}
	if len(jobs.jobs) != 3 || !jobs.jobs[0].Bulk || !jobs.jobs[1].Bulk || jobs.jobs[2].Bulk || jobs.jobs[2].Epoch != 2 {
		t.Errorf("jobs %+v", jobs.jobs)
	}
}

// desk is a service with callers who have tokens.
type desk struct {
	*ingest.Service

	t      *testing.T
	etcd   *clientv3.Client
	store  *catalog.Store
	tokens *access.Store
	known  *access.Directory
}

// space is as much as a test needs.
func space(store *catalog.Store) *ingest.Space {
	return ingest.NewSpace(store, prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
}

// everybody admits every call.
func everybody(context.Context) (leave func(), err error) { return func() {}, nil }

// pond is near every name.
func pond(context.Context, string) ([]string, error) { return []string{"host/pond"}, nil }

// perMinute is the quota of a desk's callers.
const perMinute = 100

func newDesk(t *testing.T) *desk {
	t.Helper()
	client := etcdtest.New().Client(nil)
	d := &desk{t: t, etcd: client, store: catalog.New(client, ""), tokens: access.NewStore(client, "")}
	d.known = access.NewDirectory(d.tokens, time.Minute, 0, slog.New(slog.DiscardHandler))
	room := d.serve()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { d.known.Run(ctx) })
	running.Go(func() { room.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	return d
}

// serve makes the service, as if its router had just started. It knows nothing of etcd until the space that is
// returned runs.
func (d *desk) serve() *ingest.Space {
	policy := origin.Policy{Schemes: []string{"https", "http", "ssh"}, Folders: []string{"/srv/git"}, PrivateNetworks: []string{"127.0.0.0/8"}}
	room, limits := space(d.store), ingest.Config{Policy: policy, PerMinute: perMinute, Admit: everybody, NearestRepos: pond}
	d.Service = ingest.New(d.store, accepting{letters{t: d.t}}, limits, room, nil, slog.New(slog.DiscardHandler))
	return room
}

// as is the context of a call with a new token.
func (d *desk) as(spec access.Spec) context.Context {
	d.t.Helper()
	text, _, err := d.tokens.Create(d.t.Context(), spec)
	if err != nil {
		d.t.Fatal(err)
	}
	var caller access.Principal
	testrun.Eventually(d.t, "the token is known", func(ctx context.Context) (err error) {
		caller, err = d.known.Authenticate(ctx, text)
		return err
	})
	return access.With(d.t.Context(), caller)
}

func (d *desk) put(ctx context.Context, name, url string) error {
	_, err := d.PutRepo(ctx, &ingestv1.PutRepoRequest{Name: name, Url: url})
	return err
}

// TestNobodyBorrowsTheIndexersCredentials: a caller may index a repository only if it may see the
// name that the URL implies, however the URL is written.
func TestNobodyBorrowsTheIndexersCredentials(t *testing.T) {
	d := newDesk(t)
	mine := d.as(access.Spec{Allow: []string{"git.example.com/mine/**", "localhost/srv/git/mine/**", "mine/**"}, Scopes: []access.Scope{access.ScopeIngest}})
	most := d.as(access.Spec{Allow: []string{"**"}, Deny: []string{"git.example.com/Org/secret"}, Scopes: []access.Scope{access.ScopeIngest}})
	for _, url := range []string{
		"https://git.example.com/org/secret", "https://git.example.com/Org/Secret.git", "https://git.example.com:443/org/secret",
		"https://git.example.com:8443/org/secret", "https://git.example.com./org/secret", "http://git.example.com/ORG/secret.git.git/",
		"git@git.example.com:org/secret", "ssh://git@git.example.com:2222/org/secret", "ssh://other@git.example.com/org/secret.git",
		"https://git.example.com/%6frg/secret", "https://git.example.com/mine/../org/secret", "https://git.example.com/mine/%2e%2e/org/secret",
		`https://git.example.com/mine\..\..\org\secret`, "https://git.example.com/org/secret;a", "https://user@git.example.com/org/secret",
	} {
		for who, ctx := range map[string]context.Context{"a token for some": mine, "a token for all but this": most} {
			for _, name := range []string{"", "mine/x", "git.example.com/mine/x", "git.example.com/org/secret"} {
				if code := status.Code(d.put(ctx, name, url)); code != codes.PermissionDenied && code != codes.InvalidArgument {
					t.Errorf("%s put %q at %s: %v", who, name, url, code)
				}
			}
		}
	}
	for _, url := range []string{"/srv/git/theirs/x", "file:///srv/git/theirs/x", "https://localhost/srv/git/theirs/x", "/srv/git/mine/../theirs/x"} {
		if code := status.Code(d.put(mine, "", url)); code != codes.PermissionDenied && code != codes.InvalidArgument {
			t.Errorf("%s: %v", url, code)
		}
	}
	for repo, err := range d.store.ListDesired(t.Context()) {
		t.Errorf("%v is indexed, %v", repo.Record, err)
	}
	for _, url := range []string{"https://git.example.com/mine/a", "git@git.example.com:mine/deep/b.git", "/srv/git/mine/c"} {
		if err := d.put(mine, "", url); err != nil {
			t.Errorf("one's own at %s: %v", url, err)
		}
	}
}

// TestNamesStayWithTheirURL: only an administrator gives a repository another name, and a name
// another URL. An administrator who may not see everything cannot take repositories of others
// either.
func TestNamesStayWithTheirURL(t *testing.T) {
	d := newDesk(t)
	allow := []string{"git.example.com/mine/*", "alias/*"}
	caller := d.as(access.Spec{Allow: allow, Scopes: []access.Scope{access.ScopeIngest}})
	all := d.as(access.Spec{Allow: []string{"**"}, Scopes: []access.Scope{access.ScopeIngest}})
	narrow := d.as(access.Spec{Allow: allow, Scopes: []access.Scope{access.ScopeAdmin}})
	admin := d.as(access.Spec{Allow: []string{"**"}, Scopes: []access.Scope{access.ScopeAdmin}})
	const name, url = "git.example.com/mine/a", "https://git.example.com/mine/a"
	for _, step := range []struct {
		what      string
		who       context.Context
		name, url string
		want      codes.Code
	}{
		{"a new repo", caller, "", url, codes.OK},
		{"once more", caller, name, url + ".git/", codes.OK},
		{"once more by another who sees it", all, "", "https://GIT.example.com:443/mine/a", codes.OK},
		{"without encryption", caller, "", "http://git.example.com/mine/a", codes.PermissionDenied},
		{"as another user", caller, "", "ssh://other@git.example.com/mine/a", codes.PermissionDenied},
		{"another of one's own", caller, name, "https://git.example.com/mine/b", codes.PermissionDenied},
		{"a name of one's choice", caller, "alias/a", url, codes.PermissionDenied},
		{"a name of one's choice, seeing all", all, "alias/a", url, codes.PermissionDenied},
		{"an alias by an administrator of these", narrow, "alias/a", url, codes.OK},
		{"another's repository by that administrator", narrow, "alias/b", "https://git.example.com/theirs/b", codes.PermissionDenied},
		{"another URL by that administrator", narrow, name, "https://git.example.com/mine/b", codes.OK},
		{"back by one who may not", caller, name, url, codes.PermissionDenied},
		{"an administrator of everything", admin, name, "https://git.example.org/theirs/b", codes.OK},
		{"by nobody", t.Context(), "", url, codes.PermissionDenied},
	} {
		if err := d.put(step.who, step.name, step.url); status.Code(err) != step.want {
			t.Errorf("%s: %v, want %v", step.what, err, step.want)
		}
	}
	// The error for a repo that the caller may not see does not reveal whether it exists.
	if _, _, err := d.store.PutDesired(t.Context(), &catalogv1.Desired{Name: "git.example.com/theirs/there"}); err != nil {
		t.Fatal(err)
	}
	there := d.put(caller, "", "https://git.example.com/theirs/there")
	never := d.put(caller, "", "https://git.example.com/theirs/never")
	if got := strings.ReplaceAll(there.Error(), "there", "never"); status.Code(never) != codes.PermissionDenied || got != strings.ReplaceAll(never.Error(), "there", "never") {
		t.Errorf("one that is there: %v; one that is not: %v", there, never)
	}
}

// TestRanksAreRaisedByAdministrators: ranks order everybody's answers, so a caller who may only index
// keeps or lowers the rank of its repos.
func TestRanksAreRaisedByAdministrators(t *testing.T) {
	d := newDesk(t)
	caller := d.as(access.Spec{Allow: []string{"**"}, Scopes: []access.Scope{access.ScopeIngest}})
	narrow := d.as(access.Spec{Allow: []string{"git.example.com/*"}, Scopes: []access.Scope{access.ScopeAdmin}})
	admin := d.as(access.Spec{Allow: []string{"**"}, Scopes: []access.Scope{access.ScopeAdmin}})
	for _, step := range []struct {
		what string
		who  context.Context
		rank uint32
		want codes.Code
	}{
		{"a new repo", caller, 1, codes.PermissionDenied},
		{"a new repo without a rank", caller, 0, codes.OK},
		{"a repo of one's own", caller, 100, codes.PermissionDenied},
		{"an administrator of these", narrow, 80, codes.OK},
		{"the same", caller, 80, codes.OK},
		{"higher", caller, 81, codes.PermissionDenied},
		{"lower", caller, 10, codes.OK},
		{"back", caller, 80, codes.PermissionDenied},
		{"an administrator", admin, 100, codes.OK},
	} {
		_, err := d.PutRepo(step.who, &ingestv1.PutRepoRequest{Url: "https://git.example.com/a", Facts: &ingestv1.RepoFacts{Rank: step.rank}})
		if status.Code(err) != step.want {
			t.Errorf("%s: %v, want %v", step.what, err, step.want)
		}
	}
}

// TestIDsAreGivenByAdministrators: other programs take a repo for the one with its id, so a caller who may only index keeps the id.
func TestIDsAreGivenByAdministrators(t *testing.T) {
	d := newDesk(t)
	caller := d.as(access.Spec{Allow: []string{"**"}, Scopes: []access.Scope{access.ScopeIngest}})
	admin := d.as(access.Spec{Allow: []string{"**"}, Scopes: []access.Scope{access.ScopeAdmin}})
	for _, step := range []struct {
		what   string
		who    context.Context
		id, is uint32
		want   codes.Code
	}{
		{"a new repo", caller, 1, 0, codes.PermissionDenied},
		{"a new repo without an id", caller, 0, 0, codes.OK},
		{"a repo of one's own", caller, 1, 0, codes.PermissionDenied},
		{"an administrator", admin, 1, 1, codes.OK},
		{"the same", caller, 1, 1, codes.OK},
		{"no id", caller, 0, 1, codes.OK},
		{"another", caller, 2, 1, codes.PermissionDenied},
		{"an administrator's other", admin, 2, 2, codes.OK},
	} {
		_, err := d.PutRepo(step.who, &ingestv1.PutRepoRequest{Url: "https://git.example.com/a", Facts: &ingestv1.RepoFacts{Id: step.id}})
		if status.Code(err) != step.want {
			t.Errorf("%s: %v, want %v", step.what, err, step.want)
		}
		if is, err := d.store.GetDesired(t.Context(), "git.example.com/a"); is.Record.GetFacts().GetId() != step.is {
			t.Errorf("%s: the id is %d, %v", step.what, is.Record.GetFacts().GetId(), err)
		}
	}
}

// TestNamesAreNotTakenSilently: a repository takes the place of another one only under a name that its
// caller chose.
func TestNamesAreNotTakenSilently(t *testing.T) {
	d := newDesk(t)
	admin := d.as(access.Spec{Allow: []string{"**"}, Scopes: []access.Scope{access.ScopeAdmin}})
	for _, step := range []struct {
		name, url string
		want      codes.Code
	}{
		{"", "/srv/git/mine/a", codes.OK},
		{"", "/srv/git/mine/a.git", codes.AlreadyExists},
		{"", "file:///srv/git/mine/a.git", codes.AlreadyExists},
		{"", "/srv/git/mine/a/.git", codes.OK},
		{"localhost/srv/git/mine/a", "/srv/git/mine/a.git", codes.OK},
		{"", "/srv/git/mine/a", codes.AlreadyExists},
		{"git.example.com/o/r", "https://git.example.com/o/fork", codes.OK},
		{"", "https://git.example.com/o/r", codes.AlreadyExists},
		{"git.example.com/o/r", "https://git.example.com/o/r", codes.OK},
		{"", "git@git.example.com:o/r.git", codes.OK},
	} {
		if err := d.put(admin, step.name, step.url); status.Code(err) != step.want {
			t.Errorf("put %q at %s: %v, want %v", step.name, step.url, err, step.want)
		}
	}
}

// TestRequestsToIndexAreBounded: a caller that exceeds its quota is refused with the time to retry,
// and costs no other caller a request.
func TestRequestsToIndexAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		spec := access.Spec{Name: "twin", Allow: []string{"git.example.com/**"}, Scopes: []access.Scope{access.ScopeIngest}}
		greedy, other := d.as(spec), d.as(spec)
		spec.Scopes = []access.Scope{access.ScopeAdmin}
		admin := d.as(spec)
		for range perMinute {
			if err := d.put(greedy, "", "https://git.example.com/x"); err != nil {
				t.Fatal(err)
			}
		}
		var wait time.Duration
		for range 3 { // refused requests cost nothing
			err := d.put(greedy, "", "https://git.example.com/x")
			if !searchapi.IsOverloaded(err) {
				t.Fatalf("one more: %v", err)
			}
			wait = status.Convert(err).Details()[0].(*errdetails.RetryInfo).GetRetryDelay().AsDuration()
		}
		if _, err := d.RetryDeadLetter(greedy, &ingestv1.RetryDeadLetterRequest{Name: "git.example.com/x"}); !searchapi.IsOverloaded(err) {
			t.Errorf("a job made again: %v", err)
		}
		if err := d.put(other, "", "https://git.example.com/y"); err != nil {
			t.Errorf("another token of the same name: %v", err)
		}
		for range 2 * perMinute {
			if err := d.put(admin, "", "https://git.example.com/z"); err != nil {
				t.Fatalf("an administrator: %v", err)
			}
		}
		if time.Sleep(wait); wait <= 0 || wait > time.Minute/perMinute+time.Millisecond {
			t.Errorf("to come back after %v", wait)
		}
		if err := d.put(greedy, "", "https://git.example.com/x"); err != nil {
			t.Errorf("when it came back: %v", err)
		}
	})
}

// TestRequestsCountBySize: large records use up the quota of a token faster, and no record is larger than
// the bound.
func TestRequestsCountBySize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		greedy := d.as(access.Spec{Name: "greedy", Allow: []string{"git.example.com/**"}, Scopes: []access.Scope{access.ScopeIngest}})
		put := func(pairs int) error {
			meta := map[string]string{}
			for i := range pairs {
				meta[fmt.Sprint(i)] = strings.Repeat("v", 1024)
			}
			_, err := d.PutRepo(greedy, &ingestv1.PutRepoRequest{Url: "https://git.example.com/x", Facts: &ingestv1.RepoFacts{Meta: meta}})
			return err
		}
		for _, pairs := range []int{16, 64} {
			if err := put(pairs); status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "at most 16384") {
				t.Errorf("%d KiB: %v", pairs, err)
			}
			time.Sleep(time.Minute)
		}
		n := 0
		for ; put(9) == nil; n++ {
			if n > perMinute {
				break
			}
		}
		if n != perMinute/10 {
			t.Errorf("%d requests of 9 KiB each, within a quota of %d", n, perMinute)
		}
	})
}

// TestAddedReposAreBounded: a token adds so many repos and no more, whether or not they are there still. It
// goes on requesting those that are there; other tokens and administrators go on adding.
func TestAddedReposAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		spec := access.Spec{Name: "twin", Allow: []string{"git.example.com/**"}, Scopes: []access.Scope{access.ScopeIngest}}
		greedy, other := d.as(spec), d.as(spec)
		spec.Scopes = []access.Scope{access.ScopeAdmin}
		admin := d.as(spec)
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		url := func(i int) string { return fmt.Sprint("https://git.example.com/", i) }
		d.fill(greedy, 10_000-2)
		for i := range 2 {
			must(d.put(greedy, "", url(i)))
		}
		_, err := d.store.DeleteRepo(t.Context(), "git.example.com/1")
		must(err)
		synctest.Wait()
		for _, i := range []int{1, 2} {
			if err := d.put(greedy, "", url(i)); !searchapi.IsOverloaded(err) || !strings.Contains(err.Error(), "added 10000 repos") {
				t.Errorf("one more: %v", err)
			}
		}
		must(d.put(greedy, "", url(0)))
		must(d.put(other, "", url(2)))
		must(d.put(admin, "", url(3)))
		time.Sleep(time.Hour)
		_, err = d.store.DropMemories(t.Context(), time.Now())
		must(err)
		synctest.Wait()
		must(d.put(greedy, "", url(4)))
	})
}

// TestAddedReposAreBoundedFromTheStart: a router that has just started does not take a token's repos for none.
func TestAddedReposAreBoundedFromTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		spec := access.Spec{Name: "twin", Allow: []string{"git.example.com/**"}, Scopes: []access.Scope{access.ScopeIngest}}
		greedy, other := d.as(spec), d.as(spec)
		d.fill(greedy, 10_000)
		room := d.serve()
		for _, caller := range []context.Context{greedy, other} {
			if err := d.put(caller, "", "https://git.example.com/a"); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "just started") {
				t.Errorf("before anything is known: %v", err)
			}
		}
		var calls, running sync.WaitGroup
		calls.Go(func() {
			if err := d.put(greedy, "", "https://git.example.com/a"); !searchapi.IsOverloaded(err) {
				t.Errorf("a token that added all it may: %v", err)
			}
		})
		calls.Go(func() {
			if err := d.put(other, "", "https://git.example.com/b"); err != nil {
				t.Errorf("another token: %v", err)
			}
		})
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		running.Go(func() { room.Run(ctx) })
		calls.Wait()
		cancel()
		running.Wait()
	})
}

// fill makes repos that a caller has added; more requests would be a test of the quota.
func (d *desk) fill(caller context.Context, repos int) {
	d.t.Helper()
	who, err := access.From(caller)
	if err != nil {
		d.t.Fatal(err)
	}
	for i := range repos {
		if _, err := d.etcd.Put(d.t.Context(), fmt.Sprint(catalog.DefaultPrefix, "puts/git.example.com/old", i), who.ID()); err != nil {
			d.t.Fatal(err)
		}
	}
}
