package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/testcontainers/testcontainers-go/wait"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/trawl-search/trawl/integration/hostile"
	"github.com/trawl-search/trawl/internal/access"
	"github.com/trawl-search/trawl/internal/gitsource/gitsourcetest"
	"github.com/trawl-search/trawl/internal/testrun"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// smallMemory is the memory limit of a container with all roles: that of a small machine.
const smallMemory = 4 << 30

// TestHostileCallers: hostile callers send everything they have at once to a `trawl up` in 4 GiB: gzip bombs, heavy
// expressions, repositories that are tree bombs and pack bombs, web pages, revisions that do not exist, connections that
// stay idle, answers that nobody reads, and records that fill etcd. No process is killed, and honest callers get complete
// answers throughout, both with tokens and without access control.
func TestHostileCallers(t *testing.T) {
	for _, mode := range []string{"tokens", "insecure"} {
		t.Run(mode, func(t *testing.T) {
			s := startSmall(t, mode)
			stop := s.asking(queryTime, s.repos...)
			defer s.holdConnections()()
			recipes := sync.WaitGroup{}
			attacks := []func(){s.throwBombs, s.askTypeRepos, s.indexBombs, s.askFutureRevisions}
			if mode == "tokens" { // without them, an address is one caller, and this test has one
				defer s.readNothing()()
				attacks = append(attacks, s.fillEtcd)
			}
			for _, recipe := range attacks {
				recipes.Go(recipe)
			}
			ended := make(chan struct{})
			go func() { recipes.Wait(); close(ended) }()
			s.openPages(ended)
			if got := stop(); got.incomplete > 0 || len(got.failed) > 0 || got.complete < 5 {
				t.Errorf("an honest caller noticed: %v", got)
			}
			s.survived()
		})
	}
}

// small is Trawl in one container, with some honest repositories.
type small struct {
	*cluster
	mode    string
	node    *node
	repos   []*repository
	hostile *routerClient // has a token if the mode requires one
}

func startSmall(t *testing.T, mode string) *small {
	t.Helper()
	s := &small{cluster: newNetwork(t), mode: mode}
	var err error
	s.node, err = s.start(t.Context(), spec{
		name: "router-and-all", image: s.images.Indexer, ports: []string{"7430/tcp", "7431/tcp"}, volumes: []string{"/data"}, memory: smallMemory,
		ready: wait.ForHTTP("/readyz").WithPort("7431/tcp"),
		args: concat([]string{
			"up", "--data-dir", "/data", "--grpc", "0.0.0.0:7430", "--http", "0.0.0.0:7431",
			"--access-mode", mode, "--indexer-workers", "2",
		}, s.policy()),
	})
	s.must(err)
	s.clients = []*routerClient{newRouterClient(t, s.node, s.newToken("honest", "admin"))}
	s.hostile = newRouterClient(t, s.node, s.newToken("hostile", "search,ingest"))
	t.Cleanup(func() { s.hostile.Close() })
	s.repos = s.newRepositories("honest", 3)
	s.index(s.repos...)
	s.expect(s.repos...)
	return s
}

// newToken makes a token for all repos. It returns none if the mode requires none.
func (s *small) newToken(name, scopes string) access.Text {
	s.t.Helper()
	if s.mode != "tokens" {
		return ""
	}
	out := s.node.run(s.t, "/trawl", "tokens", "create", "--etcd-endpoints", "unix:///data/etcd/sockets/client.sock", "--name", name, "--allow", "**", "--scopes", scopes)
	token := regexp.MustCompile(`trawl_\S+`).FindString(out)
	if token == "" {
		s.t.Fatalf("no token in %q", out)
	}
	return access.Text(token)
}

// throwBombs throws bombs as two hundred callers without a token.
func (s *small) throwBombs() {
	s.must(hostile.RegisterBombs()) // nothing else in this process compresses
	var conns []*grpc.ClientConn
	for range 20 {
		conn, err := grpc.NewClient(s.node.address(s.t, "7430/tcp"), grpc.WithTransportCredentials(insecure.NewCredentials()))
		s.must(err)
		defer conn.Close()
		conns = append(conns, conn)
	}
	want := codes.Unauthenticated
	if s.mode != "tokens" {
		want = codes.ResourceExhausted
	}
	hostile.ThrowBombs(s.t.Context(), conns, "http://"+s.node.address(s.t, "7431/tcp")+"/api/search", func(method string, err error) {
		if status.Code(err) != want {
			s.t.Errorf("a bomb by %s: %v", method, err)
		}
	})
}

// askTypeRepos runs the most expensive queries, 32 at once, and repeats refused ones.
func (s *small) askTypeRepos() {
	var next, refused atomic.Int64
	var callers sync.WaitGroup
	for range 32 {
		callers.Go(func() {
			for i := next.Add(1); i <= hostile.TypeRepos; i = next.Add(1) {
				for range 20 {
					_, err := s.hostile.query(s.t.Context(), hostile.TypeRepo(int(i)), queryTime, nil)
					switch code := status.Code(err); code {
					case codes.ResourceExhausted:
						refused.Add(1)
						time.Sleep(time.Millisecond)
						continue
					case codes.OK, codes.DeadlineExceeded:
					default:
						s.t.Errorf("query %d: %v", i, err)
					}
					break
				}
			}
		})
	}
	callers.Wait()
	s.t.Logf("of %d heavy queries %d tries were refused", hostile.TypeRepos, refused.Load())
}

// indexBombs has repositories that are bombs indexed concurrently, again and again.
func (s *small) indexBombs() {
	const rounds = 3
	bombs := []func(*gitsourcetest.Repo){
		func(r *gitsourcetest.Repo) { hostile.TreeBomb(r, "") },
		func(r *gitsourcetest.Repo) { hostile.TreeBomb(r, strings.Repeat("long", 50)) },
		func(r *gitsourcetest.Repo) { r.CommitPackBomb(3 << 29) }, // 1.5 times the memory that git may use
	}
	var callers sync.WaitGroup
	for i, bomb := range bombs {
		r := s.newRepository(fmt.Sprintf("bomb%d", i))
		callers.Go(func() {
			bomb(r.Repo)
			for range rounds {
				put, err := s.hostile.ingest.PutRepo(s.t.Context(), &ingestv1.PutRepoRequest{Url: r.url})
				if err != nil {
					s.t.Errorf("bomb %d: %v", i, err)
					return
				}
				got := s.settled(put)
				if got.GetState() != ingestv1.State_STATE_FAILED || !tooLarge.MatchString(got.GetReason()) {
					s.t.Errorf("bomb %d: %v", i, got)
				}
			}
		})
	}
	callers.Wait()
}

// askFutureRevisions asks for revisions that do not exist, as 256 callers at once, in every
// possible way.
func (s *small) askFutureRevisions() {
	request := &searchv1.SearchRequest{Query: heron, Options: &searchv1.SearchOptions{MaxFiles: 1}}
	answer, err := s.hostile.search.Search(s.t.Context(), request)
	for status.Code(err) == codes.ResourceExhausted { // its other attacks take all that one caller may
		time.Sleep(time.Millisecond)
		answer, err = s.hostile.search.Search(s.t.Context(), request)
	}
	s.must(err)
	ways := hostile.FutureRevisions(s.hostile.search, heron, answer.GetNextPageToken())
	var callers sync.WaitGroup
	for i := range 256 {
		callers.Go(func() {
			for range 4 {
				err := ways[i%len(ways)](s.t.Context())
				if code := status.Code(err); code != codes.FailedPrecondition && code != codes.ResourceExhausted {
					s.t.Errorf("way %d to a revision that does not exist: %v", i%len(ways), err)
				}
			}
		})
	}
	callers.Wait()
}

// holdConnections opens idle connections to both addresses, and closes them at stop.
func (s *small) holdConnections() (stop func()) {
	var held []net.Conn
	for _, port := range []string{"7430/tcp", "7431/tcp"} {
		for range 500 {
			conn, err := net.Dial("tcp", s.node.address(s.t, port))
			s.must(err)
			held = append(held, conn)
		}
	}
	return func() {
		for _, conn := range held {
			conn.Close() // the server has closed it already
		}
	}
}

// readNothing asks for a file of 8 MiB and for streams until stop, 1,000 at once, and reads no answer. All together would be more than the
// memory of the container.
func (s *small) readNothing() (stop func()) {
	r := s.newRepository("unread")
	r.Files("main", "large", strings.Repeat("nobody reads this\n", 8<<20/18))
	s.settled(s.put(r))
	ctx, cancel := context.WithCancel(s.t.Context())
	var calls sync.WaitGroup
	var client []*routerClient
	token := s.newToken("unread", "search")
	for range 4 {
		c := newRouterClient(s.t, s.node, token, grpc.WithStaticStreamWindowSize(64<<10), grpc.WithStaticConnWindowSize(16<<20)) // a larger window would hold the answers here
		client = append(client, c)
		for i := range 250 {
			method, request := searchv1.SearchService_GetFile_FullMethodName, proto.Message(&searchv1.GetFileRequest{Repo: r.name, Path: []byte("large")})
			if i%2 == 1 {
				method = searchv1.SearchService_StreamSearch_FullMethodName
				request = &searchv1.StreamSearchRequest{Search: &searchv1.SearchRequest{Query: "nobody", Options: &searchv1.SearchOptions{MaxMatchesPerFile: 1 << 20}}}
			}
			calls.Go(func() {
				for ctx.Err() == nil {
					call, end := context.WithTimeout(ctx, time.Minute)
					stream, err := c.NewStream(call, &grpc.StreamDesc{ServerStreams: true}, method)
					if err == nil {
						err = errors.Join(stream.SendMsg(request), stream.CloseSend())
					}
					if err == nil {
						if head, _ := stream.Header(); len(head) > 0 { // the answer has begun
							<-call.Done()
						}
					}
					end()
					select { // one that is refused is opened again soon
					case <-ctx.Done():
					case <-time.After(time.Second):
					}
				}
			})
		}
	}
	return func() {
		cancel()
		calls.Wait()
		for _, c := range client {
			c.Close()
		}
	}
}

// fillEtcd puts the largest records that there may be until it is refused for a while. Its token can be revoked then.
func (s *small) fillEtcd() {
	token := s.newToken("filler", "ingest")
	filler := newRouterClient(s.t, s.node, token)
	defer filler.Close()
	branches := make([]string, 15)
	for i := range branches {
		branches[i] = fmt.Sprint(i, strings.Repeat("/"+strings.Repeat("b", 199), 5))
	}
	refused := 0
	for i := 0; refused < 100; i++ {
		_, err := filler.ingest.PutRepo(s.t.Context(), &ingestv1.PutRepoRequest{Url: fmt.Sprint(s.repos[0].url, "/filler", i), Branches: branches})
		switch status.Code(err) {
		case codes.OK:
		case codes.ResourceExhausted:
			refused++
		default:
			s.t.Errorf("record %d: %v", i, err)
			return
		}
	}
	id, _, _ := strings.Cut(strings.TrimPrefix(string(token), "trawl_"), "_")
	s.node.run(s.t, "/trawl", "tokens", "revoke", "--etcd-endpoints", "unix:///data/etcd/sockets/client.sock", id)
}

// openPages sends the requests of other sites' pages until the other attacks have ended.
func (s *small) openPages(ended <-chan struct{}) {
	for over := false; !over; {
		select {
		case <-ended:
			over = true
		case <-time.After(50 * time.Millisecond):
		}
		for _, page := range hostile.Pages(s.node.address(s.t, "7430/tcp"), s.node.address(s.t, "7431/tcp")) {
			want := page.Want
			if s.mode == "tokens" && want != 0 {
				want = 401 // the missing token is checked before anything else
			}
			code, _, err := page.Send(s.t.Context())
			if err != nil || code != want {
				s.t.Errorf("%s: status %d, want %d: %v", page.Name, code, want, err)
			}
		}
	}
}

var (
	tooLarge = regexp.MustCompile("more .*than|source.git-memory")
	oomKills = regexp.MustCompile(`(?m)^oom_kill (\d+)$`)
	peak     = regexp.MustCompile(`(?m)^peak (\d+)$`)
)

// survived checks that no process of the container ran out of memory and that every git has ended.
func (s *small) survived() {
	s.t.Helper()
	state, err := s.node.State(s.t.Context())
	s.must(err)
	if !state.Running || state.OOMKilled {
		s.t.Errorf("the container runs: %t, killed for want of memory: %t", state.Running, state.OOMKilled)
	}
	told := s.node.run(s.t, "/bin/sh", "-c", `cd /sys/fs/cgroup; cat memory.events memory/memory.oom_control 2>/dev/null
		echo peak $(cat memory.peak memory/memory.max_usage_in_bytes 2>/dev/null)`)
	kills, most := oomKills.FindStringSubmatch(told), peak.FindStringSubmatch(told)
	if kills == nil || most == nil {
		s.t.Fatalf("the kernel reports no memory statistics: %q", told)
	}
	bytes, err := strconv.ParseInt(most[1], 10, 64)
	s.must(err)
	s.t.Logf("%s processes were killed for want of memory; the peak was %d MiB, page cache included", kills[1], bytes>>20)
	if kills[1] != "0" {
		s.t.Errorf("%s processes were killed for want of memory", kills[1])
	}
	testrun.Eventually(s.t, "git has ended", func(context.Context) error {
		left := s.node.run(s.t, "/bin/sh", "-c", "for p in /proc/[0-9]*; do read -r name < $p/comm && case $name in git*) echo $p $name;; esac; done 2>/dev/null; true")
		if left != "" {
			return fmt.Errorf("there are %q", left)
		}
		return nil
	})
}
