package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/internal/access"
	"github.com/trawl-search/trawl/internal/config"
	"github.com/trawl-search/trawl/internal/gitsource/origin"
	"github.com/trawl-search/trawl/internal/searchapi"
	"github.com/trawl-search/trawl/internal/tlsfiles"
	"github.com/trawl-search/trawl/internal/wait"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

type selfTestSettings struct {
	Addr     string        `config:"addr" doc:"HOST:PORT of a router, for gRPC"`
	TLS      bool          `config:"tls" doc:"speak TLS with the router; implied by ca-file"`
	CAFile   string        `config:"ca-file" doc:"PEM file with the CAs of the router; empty: the system's CAs"`
	Exposed  bool          `config:"plaintext-token" doc:"send the token of this test in plain text, where the router is not on this machine and speaks no TLS"`
	Routers  string        `config:"router-pods" doc:"HOST:PORT of the HTTP servers of routers, which must be ready; every address of the host is asked, over TLS if the router at addr speaks it; the certificates must be valid for the name in addr"`
	Pods     []string      `config:"pods" doc:"what else must be ready, as ROLE=HOST:PORT of its HTTP server; every address of the host is asked"`
	PodsCA   string        `config:"pods-ca-file" doc:"PEM file with the CAs that sign the certificates of the pods' HTTP servers, which must be valid for the name of the host; empty: they speak plain text"`
	URL      string        `config:"url" doc:"URL or path of the Git repository that is indexed"`
	Find     string        `config:"find" doc:"phrase that the repository holds"`
	Name     string        `config:"name" doc:"name of the repo meanwhile; it is deleted at the end"`
	Patience time.Duration `config:"patience" doc:"how long to wait for roles to be ready, and then for the index; for etcd 10s at most"`
	Etcd     etcdConfig    `config:"etcd"`
}

// SetDefaults implements config.Settings.
func (s *selfTestSettings) SetDefaults() {
	s.Addr, s.Name, s.Patience = defaultAddress, "trawl-selftest", time.Minute
	s.Etcd.SetDefaults()
}

// Validate implements config.Settings.
func (s *selfTestSettings) Validate() error {
	var check config.Check
	check.Address("addr", s.Addr)
	if s.Routers != "" {
		check.Address("router-pods", s.Routers)
	}
	for _, pods := range s.Pods {
		role, address, _ := strings.Cut(pods, "=")
		check.That(role != "", "pods", pods, "ROLE=HOST:PORT")
		check.Address("pods", address)
	}
	check.NotEmpty("url", s.URL)
	check.NotEmpty("find", s.Find)
	check.NotEmpty("name", s.Name)
	config.Between(&check, "patience", s.Patience, time.Second, time.Hour)
	check.Nested("etcd", &s.Etcd)
	return check.Err()
}

func newSelfTest(p Process) *cobra.Command {
	var s selfTestSettings
	cmd := &cobra.Command{
		Use:   "selftest",
		Short: "Check that an installation works: index a repository, search it, delete it",
		Long: `Check that an installation works: make a token for this test in etcd, wait until all roles are ready, index a
repository, search it, delete it and revoke the token. Errors name what is missing.`,
	}
	return configured(p, cmd, &s, func(cmd *cobra.Command) error {
		return withTokens(cmd.Context(), s.Etcd, func(store *access.Store) error {
			return (&selfTest{selfTestSettings: s, p: p}).run(cmd.Context(), store)
		})
	})
}

// selfTestToken bounds each operation on the token, as patience does. selfTestLife is the token's lifetime, in case
// the test dies before it revokes it.
const (
	selfTestToken = 10 * time.Second
	selfTestLife  = 10 * time.Minute
)

type selfTest struct {
	selfTestSettings
	p Process
}

// callers returns the settings by which the self-test verifies routers.
func (t *selfTest) callers() tlsfiles.ClientConfig { return tlsfiles.ClientConfig{CAFile: t.CAFile} }

func (t *selfTest) sayf(format string, args ...any) { fmt.Fprintf(t.p.Out, format+"\n", args...) }

// failed names the step that failed, in words for the person who reads the log.
func failed(step string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %s", step, explain(err))
}

func (t *selfTest) run(ctx context.Context, store *access.Store) (err error) {
	etcd := "etcd at " + strings.Join(t.Etcd.Endpoints, ",")
	made, cancel := context.WithTimeout(ctx, min(selfTestToken, t.Patience))
	defer cancel()
	own, err := origin.RepoName(t.URL)
	if err != nil {
		return failed("url", err)
	}
	// Only an administrator gives a repository another name than its own.
	token, record, err := store.Create(made, access.Spec{
		Name: t.Name, Allow: []string{t.Name, own}, Scopes: []access.Scope{access.ScopeAdmin}, Lifetime: selfTestLife,
	})
	if err != nil {
		return failed(etcd, err)
	}
	defer func() {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), selfTestToken)
		defer cancel()
		err = errors.Join(err, failed(etcd, store.Revoke(last, record.GetId())))
	}()
	t.sayf("%s: made a token for this test", etcd)
	if err := t.awaitPods(ctx); err != nil {
		return err
	}
	router := routerAt{addr: t.Addr, token: token, tls: t.TLS, files: t.callers(), exposed: t.Exposed}
	return withClient(ctx, router, t.prove)
}

// prove indexes the repository, searches it and deletes it.
func (t *selfTest) prove(ctx context.Context, c client) (err error) {
	limited, cancel := context.WithTimeout(ctx, t.Patience)
	defer cancel()
	put, err := t.put(limited, c)
	if err != nil {
		return failed("router at "+t.Addr, callFailed(t.Addr, c.conn, err))
	}
	defer func() {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), selfTestToken)
		defer cancel()
		_, gone := c.ingest.DeleteRepo(last, &ingestv1.DeleteRepoRequest{Name: t.Name})
		err = errors.Join(err, failed("delete", gone))
	}()
	state := ingestv1.State_STATE_QUEUED
	done, err := awaitIndex(limited, c, put, func(s *ingestv1.RepoStatus) { state = s.GetState() })
	if err != nil {
		return failed("index, which was "+searchapi.State(state), err)
	}
	t.sayf("indexed %s as %s", t.URL, t.Name)
	return t.search(limited, c, done.GetRevisionToken())
}

// put requests the index. It retries, since a router accepts a new token only a moment after its
// creation.
func (t *selfTest) put(ctx context.Context, c client) (*ingestv1.PutRepoResponse, error) {
	var refused error
	for {
		put, err := c.ingest.PutRepo(ctx, &ingestv1.PutRepoRequest{Url: t.URL, Name: t.Name})
		switch code := status.Code(err); {
		case refused != nil && ctx.Err() != nil:
			return nil, refused
		case code != codes.Unauthenticated && code != codes.Unavailable:
			return put, err
		}
		if refused = err; !wait.Sleep(ctx, time.Second) {
			return nil, refused
		}
	}
}

// search finds the phrase in an index that is at least as new as the one made.
func (t *selfTest) search(ctx context.Context, c client, revision []byte) error {
	answer, err := c.search.Search(ctx, &searchv1.SearchRequest{
		Query: fmt.Sprintf("%q", t.Find),
		Options: &searchv1.SearchOptions{
			Mode: searchv1.Mode_MODE_EXHAUSTIVE, MaxFiles: 1, RequireComplete: true,
			Consistency: &searchv1.Consistency{Level: &searchv1.Consistency_AtLeast{AtLeast: revision}},
		},
	})
	if err != nil {
		return failed("search", err)
	}
	if len(answer.GetFiles()) == 0 {
		return fmt.Errorf("search: %q was not found in what was indexed", t.Find)
	}
	t.sayf("found %q in %s; everything works", t.Find, answer.GetFiles()[0].GetPath())
	return nil
}
