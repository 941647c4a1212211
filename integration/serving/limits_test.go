package serving_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/internal/access"
	"github.com/trawl-search/trawl/internal/searchapi"
	"github.com/trawl-search/trawl/internal/telemetry/telemetrytest"
	adminv1 "github.com/trawl-search/trawl/proto/trawl/admin/v1"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// TestLimitsWithoutRestart: a limit that is set holds in a running router, for one token or for all, a raised one admits at once who
// was refused, and one that is unset leaves the setting.
func TestLimitsWithoutRestart(t *testing.T) {
	tel, spans := telemetrytest.New(t)
	c := startWith(t, &cluster{replication: 1, access: guarded(), tel: tel, spans: spans}, 1)
	c.publish("host/repo", map[string]string{"a.go": "needle"})
	all := func(scopes ...access.Scope) access.Spec { return access.Spec{Allow: []string{"**"}, Scopes: scopes} }
	ops, _ := c.token(all(access.ScopeAdmin))
	text, id := c.token(all(access.ScopeSearch, access.ScopeIngest))
	admin, caller := adminv1.NewAdminServiceClient(c.as(ops).conn), c.as(text)
	set := func(name, value string) error {
		_, err := admin.SetLimit(t.Context(), &adminv1.SetLimitRequest{Name: name, Value: value})
		return err
	}
	refused := func(limit string) func() bool {
		return func() bool {
			err := caller.use(limit)
			return searchapi.IsOverloaded(err) && strings.Contains(err.Error(), limit)
		}
	}
	for _, limit := range []struct{ name, least, ample string }{
		{"caller-processors", "0.000001", "64"},
		{"repos-per-minute", "1", "1000"},
	} {
		for _, name := range []string{limit.name, "tokens." + id + "." + limit.name} {
			c.must(set(name, limit.least))
			began := time.Now()
			c.eventually(name+" holds", refused(limit.name))
			t.Logf("%s holds after %v", name, time.Since(began))
			c.must(set(name, limit.ample))
			c.eventually(name+" is raised", func() bool { return !refused(limit.name)() })
			c.must(set(name, limit.least))
			c.eventually(name+" holds again", refused(limit.name))
			c.must(set(name, ""))
			c.eventually(name+" is unset", func() bool { return !refused(limit.name)() })
		}
	}
	for name, want := range map[string]codes.Code{
		"caller-processor": codes.NotFound, "tokens.nobody.caller-calls": codes.NotFound, "tokens." + id + ".poll-per-second": codes.NotFound,
		"tokens.test.caller-calls": codes.FailedPrecondition, // two tokens have this name
	} {
		if err := set(name, "7"); status.Code(err) != want {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
	if err := set("caller-calls", "none"); status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "from 1 to 1048576") {
		t.Errorf("a bad value: %v", err)
	}
	c.must(set("tokens."+id+".caller-calls", "7"))
	list, err := admin.ListLimits(t.Context(), &adminv1.ListLimitsRequest{})
	c.must(err)
	found := map[string]*adminv1.Limit{}
	for _, l := range list.GetLimits() {
		found[l.GetName()] = l
	}
	own, of := found["tokens."+id+".caller-calls"], found["caller-calls"]
	if own.GetValue() != "7" || own.GetSetAt() == nil || !strings.Contains(own.GetSetBy(), "test") || own.GetSetting() != "250" || of.GetValue() != "" || of.GetSetting() != "250" {
		t.Errorf("listed %v and %v", own, of)
	}
	mere := adminv1.NewAdminServiceClient(caller.conn)
	if _, err := mere.SetLimit(t.Context(), &adminv1.SetLimitRequest{Name: "caller-calls", Value: "9"}); status.Code(err) != codes.PermissionDenied {
		t.Errorf("a token without the scope admin sets a limit: %v", err)
	}
}

// use makes two calls that a limit of callers bounds.
func (c *cluster) use(limit string) (err error) {
	for i := range 2 {
		if limit == "caller-processors" {
			_, err = c.search.Search(c.t.Context(), &searchv1.SearchRequest{Query: fmt.Sprintf("content:needle%d", i)})
		} else {
			_, err = c.ingest.PutRepo(c.t.Context(), &ingestv1.PutRepoRequest{Url: fmt.Sprintf("https://example.org/mine/r%d.git", i)})
		}
		if err != nil {
			return err
		}
	}
	return nil
}
