package search_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.opentelemetry.io/otel/trace/noop"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/trawl-search/trawl/internal/access"
	"github.com/trawl-search/trawl/internal/bucket"
	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/embedded"
	"github.com/trawl-search/trawl/internal/restore"
	"github.com/trawl-search/trawl/internal/searchapi"
	"github.com/trawl-search/trawl/internal/testrun"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
	"github.com/trawl-search/trawl/services/router/internal/search"
)

var manyRepos = flag.Int("roots", 3000, "roots of TestVeryManyRepos")

// TestVeryManyRepos restores generated repos into an etcd, and starts a router there whose searcher answers from the names alone.
// It checks what is listed, and logs how long each step takes (docs/scale.md): the least of some runs.
func TestVeryManyRepos(t *testing.T) {
	n := *manyRepos
	etcd, err := embedded.StartEtcd(t.Context(), embedded.Config{NoSync: true, Dir: t.TempDir(), Quota: 16 << 30, Logger: slog.New(slog.DiscardHandler)})
	testrun.Must(t, err)
	defer etcd.Close()
	restoreMany(t, catalog.New(etcd.Client(), ""), n)
	startAlone(t, etcd.Endpoint())

	client, err := catalog.Connect(catalog.Options{Endpoints: []string{etcd.Endpoint()}})
	testrun.Must(t, err)
	defer client.Close()
	m := startMany(t, client, n)
	name := oneOfMany(n / 2).Repo
	needles := (n + 9999) / 10_000
	for _, query := range []struct {
		text string
		want int // at least
	}{{"", min(n, 1000)}, {"repo:^" + name + "$", 1}, {"repo:repository0042", needles}, {"needle", needles}, {"type:repo needle", needles}, {"lang:rust needle", 0}} {
		m.timed(t, fmt.Sprintf("repos %q", query.text), 20, func(ctx context.Context) {
			listed, err := m.List(ctx, &searchv1.ListRequest{Query: query.text, SyntaxVersion: 2})
			if err != nil || !listed.Coverage.Complete || len(listed.Repos) < query.want {
				t.Errorf("%q lists %d repos, want %d; %v", query.text, len(listed.GetRepos()), query.want, err)
			}
		})
	}
	for _, text := range []string{"", "repository0042", "sation0001/repository00", "ry0", "nothing like it"} {
		m.timed(t, fmt.Sprintf("names with %q", text), 20, func(ctx context.Context) {
			names, err := m.RepoNames(ctx, text)
			testrun.Must(t, err)
			some := 0
			for name := range names {
				if some++; !strings.Contains(name, text) {
					t.Errorf("%q is among the names with %q", name, text)
				}
				if some == 8 {
					break
				}
			}
		})
	}
	m.timed(t, "languages", 20, func(ctx context.Context) {
		if languages, err := m.Languages(ctx); err != nil || !slices.Equal(languages, []string{"Go", "Markdown", "YAML"}) {
			t.Errorf("languages %q, %v", languages, err)
		}
	})
	m.timed(t, "a misspelt repo", 20, func(ctx context.Context) {
		_, err := m.GetFile(ctx, &searchv1.GetFileRequest{Repo: strings.Replace(name, "repository", "repositroy", 1), Path: []byte("a")})
		if nearest := searchapi.NotFoundOf(err).GetNearest(); !slices.Contains(nearest, name) {
			t.Errorf("%v: the nearest are %q, want %q among them", err, nearest, name)
		}
	})
	m.timed(t, "no such repo:", 20, func(ctx context.Context) {
		if _, err := m.Search(ctx, &searchv1.SearchRequest{Query: "repo:repositroy0042 needle"}); err != nil {
			t.Error(err)
		}
	})
	m.change(t, n)
}

// restoreMany restores n repos from their manifests.
func restoreMany(t *testing.T, store *catalog.Store, n int) {
	t.Helper()
	lost := bucket.NewMemory(1 << 20)
	put := func(key string, content []byte) {
		testrun.Must(t, lost.Put(t.Context(), key, bytes.NewReader(content), bucket.PutOptions{Size: int64(len(content))}))
	}
	for root := range manyRoots(n) {
		root.Shards[0].SizeBytes = 1
		if root.Shards[0].RepoNumber == 0 {
			put(root.Shards[0].Key, []byte{0})
		}
		fence, generation := root.Fence, root.Generation
		root.Fence, root.ManifestKey, root.ManifestDigest = 0, "", nil
		data, err := proto.Marshal(&catalogv1.Manifest{Root: root, Desired: &catalogv1.Desired{Name: root.Repo, Url: root.Url, Epoch: root.Epoch, RequestedAt: root.PublishedAt}})
		testrun.Must(t, err)
		put(catalog.ManifestKey(fence, root.Repo, generation, sha256.Sum256(data)), data)
	}
	start, cpu, restored := time.Now(), processorTime(t), 0
	r := restore.Restorer{Store: store, Bucket: lost}
	testrun.Must(t, r.Run(t.Context(), func(repo restore.Repo) error {
		if restored++; repo.Generation != 17 {
			t.Errorf("%v", repo)
		}
		return nil
	}, func(key string, err error) { t.Errorf("%s: %v", key, err) }))
	if t.Logf("%d repos restored in %v, %v of the processor with etcd's", restored, time.Since(start), processorTime(t)-cpu); restored != n {
		t.Errorf("%d repos restored, want %d", restored, n)
	}
}

// rootsAt names the etcd from which TestStartAlone reads roots.
const rootsAt = "TRAWL_TEST_ROOTS_AT"

// startAlone runs TestStartAlone in a process of its own, so that the memory of etcd does not count.
func startAlone(t *testing.T, endpoint string) {
	t.Helper()
	cpu := processorTime(t)
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestStartAlone$", "-test.v", "-test.timeout", "0")
	cmd.Env = append(os.Environ(), rootsAt+"="+endpoint)
	out, err := cmd.CombinedOutput()
	if t.Logf("%s\netcd took %v of the processor", out, processorTime(t)-cpu); err != nil {
		t.Error(err)
	}
}

// TestStartAlone logs how long a router takes to read its roots and to lay them out.
func TestStartAlone(t *testing.T) {
	endpoint := os.Getenv(rootsAt)
	if endpoint == "" {
		t.Skip("TestVeryManyRepos starts it")
	}
	client, err := catalog.Connect(catalog.Options{Endpoints: []string{endpoint}})
	testrun.Must(t, err)
	defer client.Close()
	began, cpu := time.Now(), processorTime(t)
	view := catalog.NewView(t.Context(), catalog.New(client, ""), slog.New(slog.DiscardHandler))
	defer view.Close()
	snapshot, err := view.WaitFor(t.Context(), 1)
	testrun.Must(t, err)
	listed := time.Since(began)
	layout, err := search.NewRoots(view).At(access.With(t.Context(), access.Anyone), nil, 0)
	testrun.Must(t, err)
	if len(layout.All()) == 0 {
		t.Error("no shards are laid out")
	}
	t.Logf("a router alone starts in %v, %v of the processor; of that the list of %d chunks %v; %d MB of heap then",
		time.Since(began), processorTime(t)-cpu, len(snapshot.Chunks()), listed, testrun.LiveHeap()>>20)
}

// many is a router of very many repos.
type many struct {
	*search.Service
	store *catalog.Store
	roots *search.Roots
}

func startMany(t *testing.T, client *clientv3.Client, n int) *many {
	t.Helper()
	m := &many{store: catalog.New(client, "")}
	began := time.Now()
	cpu := processorTime(t)
	view := catalog.NewView(t.Context(), m.store, slog.New(slog.DiscardHandler))
	t.Cleanup(view.Close)
	_, err := view.WaitFor(t.Context(), 1)
	testrun.Must(t, err)
	listed := time.Since(began)
	m.roots = search.NewRoots(view)
	anyone := access.With(t.Context(), access.Anyone)
	layout, err := m.roots.At(anyone, nil, 0)
	testrun.Must(t, err)
	if t.Logf("started beside etcd in one process in %v, %v of the processor, of that the list %v", time.Since(began), processorTime(t)-cpu, listed); len(layout.All()) != (n+999)/1000 {
		t.Fatalf("%d shards", len(layout.All()))
	}
	names := &namesOnly{shards: make(map[searchapi.Digest]int)}
	for i := range len(layout.All()) {
		names.shards[searchapi.Digest(oneOfMany(1000 * i).Shards[0].Digest)] = i
	}
	srv := grpc.NewServer(grpc.WaitForHandlers(true))
	searchv1.RegisterSearchServiceServer(srv, names)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	testrun.Must(t, err)
	var serving sync.WaitGroup
	serving.Go(func() { srv.Serve(ln) })
	t.Cleanup(func() { srv.Stop(); serving.Wait() })
	c := start(t, 0, func(c *cluster) {
		c.layout, c.searchers = layout, []*searcher{{id: "a", addr: ln.Addr().String()}}
		c.cfg.Limits.QueryBytes = 1 << 30
	})
	m.Service = search.New(c.cfg, m.roots, c, noop.NewTracerProvider().Tracer(""), search.NewMetrics(prometheus.NewRegistry()), slog.New(slog.DiscardHandler))
	return m
}

// namesOnly is a searcher of shards by their numbers. One repo in ten thousand has a needle.
type namesOnly struct {
	searchv1.UnimplementedSearchServiceServer
	shards map[searchapi.Digest]int
}

func (s *namesOnly) StreamList(streamed *searchv1.StreamListRequest, stream grpc.ServerStreamingServer[searchv1.StreamListResponse]) error {
	var entries []*searchv1.RepoEntry
	var shards []searchapi.Shard
	expression, byName := strings.CutPrefix(streamed.List.Query, "repo:")
	matches := regexp.MustCompile(expression).MatchString
	for _, planned := range streamed.List.Plan.Shards {
		shard, err := searchapi.ParsePlanned(planned)
		if err != nil {
			return err
		}
		shards = append(shards, shard)
		first, every := 1000*s.shards[shard.Digest], 1
		if strings.Contains(streamed.List.Query, "needle") {
			every = 10_000
		}
		for number := (first + every - 1) / every * every; number < first+1000; number += every {
			name := nameOfMany(number)
			if !shard.Repos.Has(number-first) || !searchapi.Within(streamed.List.Plan.Span, name) || byName && !matches(name) {
				continue
			}
			entries = append(entries, &searchv1.RepoEntry{
				Name: name, Documents: 100, ContentBytes: 700 << 10, Shards: 1, Languages: []*searchv1.LanguageShare{{Language: "Go", Documents: 100, Bytes: 700 << 10}},
			})
		}
	}
	account := searchapi.NewAccount(shards)
	for _, shard := range shards {
		account.Searched(shard.Digest)
	}
	for piece := range searchapi.EntryPieces(slices.Values(entries)) {
		if err := stream.Send(&searchv1.StreamListResponse{Repos: piece}); err != nil {
			return err
		}
	}
	return stream.Send(&searchv1.StreamListResponse{Coverage: account.Coverage()})
}

// timed logs the least time of some runs.
func (m *many) timed(t *testing.T, what string, runs int, do func(context.Context)) {
	t.Helper()
	var times []time.Duration
	for range runs {
		start := time.Now()
		do(access.With(t.Context(), access.Anyone))
		times = append(times, time.Since(start))
	}
	slices.Sort(times)
	t.Logf("%s: %v at least, %v at the median", what, times[0].Round(time.Microsecond), times[len(times)/2].Round(time.Microsecond))
}

// change logs how long a change of one root takes a router, and the first and the next layouts of callers who see all repos but one, and one alone.
func (m *many) change(t *testing.T, n int) {
	t.Helper()
	one := oneOfMany(n / 2).Repo
	callers := []access.Principal{access.Anyone, &sees{"one", func(repo string) bool { return repo == one }}, &sees{"all but one", func(repo string) bool { return repo != one }}}
	for _, caller := range callers {
		ctx := access.With(t.Context(), caller)
		start := time.Now()
		_, err := m.roots.At(ctx, nil, 0)
		testrun.Must(t, err)
		t.Logf("first layout of %q: %v", caller.VisibilityKey(), time.Since(start))
	}
	took := make([][]time.Duration, len(callers))
	for i := range 20 {
		_, _, err := m.store.PutDesired(t.Context(), &catalogv1.Desired{Name: oneOfMany(i * 7919 % n).Repo, Url: "u"})
		testrun.Must(t, err)
		lease, err := m.store.AcquireLease(t.Context(), oneOfMany(i*7919%n).Repo, time.Minute)
		testrun.Must(t, err)
		root := proto.CloneOf(lease.Root().Record)
		root.Generation, root.Epoch, root.Branches[0].Commit = lease.NextGeneration(), lease.Desired().Epoch, fmt.Sprintf("%040x", i)
		revision, err := m.store.Publish(t.Context(), lease, lease.Root(), root)
		testrun.Must(t, err, lease.Release(t.Context()))
		for j, caller := range callers {
			start := time.Now()
			layout, err := m.roots.At(access.With(t.Context(), caller), nil, revision)
			testrun.Must(t, err)
			took[j] = append(took[j], time.Since(start))
			if j < 2 && layout.Commit(root.Repo, "main", "") != root.Branches[0].Commit && (j == 0 || root.Repo == one) {
				t.Errorf("%s is at another commit", root.Repo)
			}
		}
	}
	for j, caller := range callers {
		slices.Sort(took[j])
		t.Logf("layout of %q after a change: %v at least, %v at the median", caller.VisibilityKey(), took[j][0].Round(time.Microsecond), took[j][10].Round(time.Microsecond))
	}
}

// sees is a caller who sees some repos.
type sees struct {
	key  string
	sees func(string) bool
}

func (s *sees) ID() string            { return s.key }
func (s *sees) Name() string          { return s.key }
func (s *sees) May(access.Scope) bool { return true }
func (s *sees) Sees(repo string) bool { return s.sees(repo) }
func (s *sees) VisibilityKey() string { return s.key }
