package integration

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/trawl-search/trawl/integration/recorder"
	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/testrun"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

var (
	manyRepos  = flag.Int("repos", 200, "small repos of TestManySmallRepos: leaf folders of the module cache")
	manyFolder = flag.String("repos.folder", "", "folder whose folders are the repos of TestManySmallRepos instead")
)

// Callers are recorded for recordTime, or up to ten times as long until there are enough operations, in all and of each kind. Fewer show nothing.
const (
	recordTime          = 30 * time.Second
	recorded, ofOneKind = 200, 4
)

// many is a trawl up with many small repos.
type many struct {
	*cluster

	up      *process
	web     string // host and port of its metrics
	etcd    *clientv3.Client
	data    string
	folders []string
	texts   int64 // bytes of all files that are searched by content
	began   time.Time
}

// TestManySmallRepos indexes small repos of real code in one trawl up: they are put, packed, compacted, searched, pushed to,
// renamed and deleted. While the others wait to be indexed, and again when all are compacted, callers change and read repos of their own, and one
// order of operations explains all that they were answered. It logs times, shards, memory and sizes; see docs/scale.md.
func TestManySmallRepos(t *testing.T) {
	testrun.NeedAll(t)
	m := &many{cluster: &cluster{owner: t, dir: t.TempDir()}, data: filepath.Join(t.TempDir(), "data")}
	m.find(t)
	m.makeRepos(t)
	at := testrun.Address(t)
	m.up = start(t, "up", "up", "--data-dir", m.data, "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0", "--etcd-listen", at,
		"--indexer-compact-every", "10s", "--indexer-compact-settle", "30s", "--indexer-compact-reclaim", "1m", "--indexer-gc-every", "15s")
	var addr string
	addr, m.web = readyAt(t, m.up)
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	m.ingest, m.search = ingestv1.NewIngestServiceClient(conn), searchv1.NewSearchServiceClient(conn)
	m.etcd, err = catalog.Connect(catalog.Options{Endpoints: []string{"http://" + at}})
	testrun.Must(t, err)
	t.Cleanup(func() { m.etcd.Close() })
	m.began = time.Now()
	for i := range m.folders {
		m.put(t, m.repo(i), manyName(i))
	}
	m.report(t, "put")
	m.pushMeanwhile(t)
	waiting := m.record(t, "waiting")
	m.awaitPublished(t, len(m.folders))
	m.report(t, "published")
	own := m.judge(t, waiting)
	if shards := m.metric(t, "trawl_indexer_shards_total"); int(shards) > len(m.folders)/5+20+own {
		t.Errorf("%d repos made %v shards", len(m.folders), shards)
	}
	m.check(t, "as born")
	m.awaitCompacted(t)
	m.report(t, "compacted")
	m.check(t, "compacted")
	m.judge(t, m.record(t, "compacted"))
	m.change(t)
	m.report(t, "changed")
}

func manyName(i int) string { return fmt.Sprintf("example.org/many/r%05d", i) }

func (m *many) repo(i int) string { return filepath.Join(m.dir, fmt.Sprintf("r%05d.git", i)) }

// find chooses the folders.
func (m *many) find(t *testing.T) {
	t.Helper()
	if *manyFolder != "" {
		all, err := filepath.Glob(filepath.Join(*manyFolder, "*"))
		testrun.Must(t, err)
		m.folders = all
		return
	}
	cache, err := exec.CommandContext(t.Context(), "go", "env", "GOMODCACHE").Output()
	testrun.Must(t, err)
	root := strings.TrimSpace(string(cache))
	var leaves []string
	testrun.Must(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if path == filepath.Join(root, "cache") {
			return filepath.SkipDir
		}
		entries, err := os.ReadDir(path)
		files, folders := 0, 0
		for _, e := range entries {
			if e.IsDir() {
				folders++
			} else if e.Type().IsRegular() {
				files++
			}
		}
		if files > 0 && folders == 0 {
			leaves = append(leaves, path)
		}
		return err
	}))
	for i := range *manyRepos { // from everywhere in the cache
		if at := i * len(leaves) / *manyRepos; len(m.folders) == 0 || m.folders[len(m.folders)-1] != leaves[at] {
			m.folders = append(m.folders, leaves[at])
		}
	}
}

// makeRepos makes a bare repository of each folder, with a file that has its number.
func (m *many) makeRepos(t *testing.T) {
	t.Helper()
	var group errgroup.Group
	group.SetLimit(runtime.NumCPU())
	var mu sync.Mutex
	for i := range m.folders {
		group.Go(func() error {
			n, err := commitFolder(m.repo(i), m.folders[i], fmt.Sprintf("drilltoken%05d\n", i))
			mu.Lock()
			defer mu.Unlock()
			m.texts += n
			return err
		})
	}
	testrun.Must(t, group.Wait())
}

// metric returns the sum of a metric's samples.
func (m *many) metric(t *testing.T, name string) (sum float64) {
	t.Helper()
	resp, err := http.Get("http://" + m.web + "/metrics")
	testrun.Must(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	testrun.Must(t, err)
	for _, found := range regexp.MustCompile(`(?m)^`+regexp.QuoteMeta(name)+`(?:\{.*\})? (\S+)$`).FindAllStringSubmatch(string(text), -1) {
		value, _ := strconv.ParseFloat(found[1], 64)
		sum += value
	}
	return sum
}

// tokens returns how many repos can be searched, by the file that each has.
func (m *many) tokens(t *testing.T) int {
	t.Helper()
	answer, err := m.search.Search(t.Context(), &searchv1.SearchRequest{Query: "f:^drill.txt$ drilltoken", Options: &searchv1.SearchOptions{CountOnly: true}})
	testrun.Must(t, err)
	return int(answer.GetStatistics().GetFilesMatched())
}

func (m *many) awaitPublished(t *testing.T, n int) {
	t.Helper()
	deadline := time.Now().Add(patience + time.Duration(n)*time.Second)
	for m.tokens(t) != n {
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d repos can be searched", m.tokens(t), n)
		}
		time.Sleep(time.Second)
	}
}

// awaitCompacted waits until nothing has been merged for a minute and a half.
func (m *many) awaitCompacted(t *testing.T) {
	t.Helper()
	last, since := -1.0, time.Now()
	for time.Since(since) < 90*time.Second {
		if now := m.metric(t, "trawl_compaction_runs_total"); now != last {
			last, since = now, time.Now()
		}
		time.Sleep(2 * time.Second)
	}
}

// check wants exactly one file for the number of some repos.
func (m *many) check(t *testing.T, when string) {
	t.Helper()
	for i := 0; i < len(m.folders); i += max(len(m.folders)/20, 1) {
		m.expect(t, fmt.Sprintf("drilltoken%05d", i), manyName(i)+":drill.txt")
	}
	if n := m.tokens(t); n != len(m.folders) {
		t.Errorf("%s: %d of %d repos can be searched", when, n, len(m.folders))
	}
}

// pushMeanwhile pushes to a repo while others wait to be indexed for the first time.
func (m *many) pushMeanwhile(t *testing.T) {
	t.Helper()
	m.settled(t, m.put(t, m.repo(0), manyName(0)))
	_, err := commitFolder(m.repo(0), m.folders[0], "drilltoken00000\nmeanwhiletoken\n")
	testrun.Must(t, err)
	begun := time.Now()
	m.settled(t, m.put(t, m.repo(0), manyName(0)))
	m.expect(t, "meanwhiletoken", manyName(0)+":drill.txt")
	t.Logf("a push is searched after %v, while %d of %d repos can be searched", time.Since(begun).Round(time.Millisecond), m.tokens(t), len(m.folders))
}

// record has callers put, delete and read further repos for a while.
func (m *many) record(t *testing.T, when string) *recorder.Workload {
	t.Helper()
	var repos []*recorder.Repo
	for i := range 6 {
		r := newRepository(t, m.dir, fmt.Sprintf("%s%d", when, i))
		r.write("same.txt", strings.Repeat("an egret\n", 500))
		repos = append(repos, &recorder.Repo{Name: fmt.Sprintf("example.org/recorded/%s%d", when, i), URL: r.path, Commit: func(files ...string) string {
			for pair := range slices.Chunk(files, 2) {
				r.write(pair[0], pair[1])
			}
			return r.commit("next")
		}})
	}
	w := recorder.New(t, testrun.Rand(t), repos, []recorder.Router{{Search: m.search, Ingest: m.ingest}})
	w.Follow(m.etcd, catalog.DefaultPrefix)
	stop := w.Start()
	for start := time.Now(); time.Since(start) < recordTime || !w.Reached(recorded, ofOneKind) && time.Since(start) < 10*recordTime; {
		time.Sleep(time.Second)
	}
	stop()
	return w
}

// judge judges what was recorded, and returns how many shards these repos had.
func (m *many) judge(t *testing.T, w *recorder.Workload) (shards int) {
	t.Helper()
	w.Settle(m.etcd, catalog.DefaultPrefix)
	if !w.Reached(recorded, ofOneKind) {
		t.Error("too few operations to show anything")
	}
	testrun.Must(t, w.History.Check(time.Minute, filepath.Join(m.dir, "history")))
	_, shards = w.Packs()
	t.Logf("judged: %v, %d shards", w.History.Counts(), shards)
	return shards
}

// change pushes to some repos, renames some and deletes some.
func (m *many) change(t *testing.T) {
	t.Helper()
	for i := range 5 {
		_, err := commitFolder(m.repo(i), m.folders[i], fmt.Sprintf("pushedtoken%05d\n", i))
		testrun.Must(t, err)
		begun := time.Now()
		m.settled(t, m.put(t, m.repo(i), manyName(i)))
		t.Logf("a push is searched after %v", time.Since(begun).Round(time.Millisecond))
		m.expect(t, fmt.Sprintf("pushedtoken%05d", i), manyName(i)+":drill.txt")
		m.expect(t, fmt.Sprintf("drilltoken%05d", i))
	}
	for i := 5; i < 10; i++ {
		m.settled(t, m.put(t, m.repo(i), "example.org/renamed"+manyName(i)))
		m.delete(t, manyName(i))
		m.expect(t, fmt.Sprintf("drilltoken%05d", i), "example.org/renamed"+manyName(i)+":drill.txt")
	}
	for i := 10; i < 15; i++ {
		m.delete(t, manyName(i))
		m.expect(t, fmt.Sprintf("drilltoken%05d", i))
	}
}

func (m *many) delete(t *testing.T, name string) {
	t.Helper()
	_, err := m.ingest.DeleteRepo(t.Context(), &ingestv1.DeleteRepoRequest{Name: name})
	testrun.Must(t, err)
}

// report logs what there is.
func (m *many) report(t *testing.T, what string) {
	t.Helper()
	var stored int64
	objects := 0
	err := filepath.WalkDir(filepath.Join(m.data, "bucket", "shards"), func(_ string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || err == nil && d.IsDir() {
			return nil
		}
		if info, gone := d.Info(); err == nil && gone == nil {
			objects, stored = objects+1, stored+info.Size()
		}
		return err
	})
	testrun.Must(t, err)
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", m.up.cmd.Process.Pid))
	testrun.Must(t, err)
	var memory []string
	for line := range strings.Lines(string(status)) {
		if key, value, _ := strings.Cut(line, ":"); slices.Contains([]string{"VmRSS", "RssAnon"}, key) {
			memory = append(memory, key+" "+strings.TrimSpace(value))
		}
	}
	t.Logf("%-10s %8v  %d repos of %.1f MB, %v shards made; searched: %v shards, %.1f MB (%.3f of the texts); in the bucket: %d, %.1f MB; %v",
		what, time.Since(m.began).Round(100*time.Millisecond), len(m.folders), float64(m.texts)/1e6, m.metric(t, "trawl_indexer_shards_total"),
		m.metric(t, "trawl_searcher_shards_ready"), m.metric(t, "trawl_searcher_cache_bytes")/1e6, m.metric(t, "trawl_searcher_cache_bytes")/float64(m.texts), objects, float64(stored)/1e6, memory)
}
