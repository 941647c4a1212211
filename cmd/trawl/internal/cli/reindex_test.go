package cli

import (
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	adminv1 "github.com/trawl-search/trawl/proto/trawl/admin/v1"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// ReindexRepo knows the repos of the script, and fails at the one named broken.
func (s *scripted) ReindexRepo(_ context.Context, req *adminv1.ReindexRepoRequest) (*adminv1.ReindexRepoResponse, error) {
	if req.GetName() == "broken" {
		return nil, status.Error(codes.Unavailable, "etcd is away")
	}
	s.reindexed = append(s.reindexed, req)
	return &adminv1.ReindexRepoResponse{Epoch: 2, Requested: true}, nil
}

// TestReindex: repos that were built since, or are about to be, are not asked for; a run that ends
// early says what is left and how to go on.
func TestReindex(t *testing.T) {
	at := time.Date(2026, 11, 23, 4, 0, 0, 0, time.UTC)
	repo := func(name string, built time.Time) *ingestv1.RepoStatus {
		return &ingestv1.RepoStatus{Name: name, BuiltInFullAt: timestamppb.New(built)}
	}
	pending := repo("asked", at.Add(-time.Hour))
	pending.FullBuildPending = true
	fine := []*ingestv1.RepoStatus{pending, repo("newer", at), repo("older", at.Add(-time.Second)), {Name: "unknown"}}
	since := "--before=" + at.Format(time.RFC3339)
	for _, c := range []struct {
		repos []*ingestv1.RepoStatus
		args  []string
		exit  int
		asked string
		want  string
	}{
		{fine, []string{"--all", since, "--dry-run"}, 0, "", "2 repositories would be indexed again\n"},
		{fine, []string{"--all", since, "--rate=0"}, 0, "older unknown", "2 repositories are asked for"},
		{fine, []string{"--all", "--rate=0"}, 0, "newer older unknown", "3 repositories are asked for"},
		{fine[2:3], []string{"older", since}, 0, "older", "1 repository is asked for"},
		{
			[]*ingestv1.RepoStatus{{Name: "a"}, {Name: "broken"}, {Name: "c"}},
			[]string{"--all", "--rate=6000", since}, 1, "a",
			"1 repository is asked for, 2 are left; to go on: trawl repos reindex --all --rate 6000 --before 2026-11-23T04:00:00Z\n",
		},
		{nil, nil, 2, "", "--all"},
		{nil, []string{"--all", "--before=yesterday"}, 2, "", "want a time such as"},
		{nil, []string{"--all", "--rate=-1"}, 2, "", "--rate is negative"},
	} {
		s := &scripted{statuses: c.repos}
		exit, out, errs := trawl(t, s, append([]string{"repos", "reindex"}, c.args...)...)
		var asked []string
		for _, req := range s.reindexed {
			asked = append(asked, req.GetName())
			if req.GetUnlessBuiltSince() == nil {
				t.Errorf("%v: %s is asked for whatever was built", c.args, req.GetName())
			}
		}
		if exit != c.exit || strings.Join(asked, " ") != c.asked || !strings.Contains(out+errs, c.want) {
			t.Errorf("reindex %v: exit %d, asked for %q\n%s%s", c.args, exit, asked, out, errs)
		}
	}
}
