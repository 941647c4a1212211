package fanout_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/trawl-search/trawl/internal/membership"
	"github.com/trawl-search/trawl/internal/searchapi"
	"github.com/trawl-search/trawl/internal/server"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	"github.com/trawl-search/trawl/services/router/internal/fanout"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func members(draining string, ids ...string) (list []*catalogv1.Searcher) {
	for _, id := range ids {
		list = append(list, &catalogv1.Searcher{Id: id, Address: id + ":1", Draining: id == draining})
	}
	return list
}

// TestCandidates: the searchers on which a shard is placed come first, in the order that searchers
// compute themselves. A draining one comes last.
func TestCandidates(t *testing.T) {
	ids := []string{"a", "b", "c", "d", "e"}
	for i := range 50 {
		digest := searchapi.Digest{byte(i)}
		rank := membership.Rank(digest, []membership.Member{{ID: "a"}, {ID: "b"}, {ID: "c"}, {ID: "d"}, {ID: "e"}})
		got := fanout.NewDirectory(members("", ids...), 2, "").Candidates(digest)
		if len(got) != 4 || got[0].ID != rank[0] || got[1].ID != rank[1] || got[0].Address != rank[0]+":1" {
			t.Fatalf("candidates %v, rank %v", got, rank)
		}
		got = fanout.NewDirectory(members(rank[0], ids...), 2, "").Candidates(digest)
		if got[0].ID != rank[1] || got[1].ID != rank[2] || got[len(got)-1].ID != rank[0] {
			t.Fatalf("%s drains: candidates %v, rank %v", rank[0], got, rank)
		}
	}
	if got := fanout.NewDirectory(nil, 2, "").Candidates(searchapi.Digest{}); len(got) != 0 {
		t.Errorf("nobody is live, and candidates are %v", got)
	}
}

// TestCandidatesAreInOtherZones: routers place shards with the zones of the records, as
// searchers do.
func TestCandidatesAreInOtherZones(t *testing.T) {
	live := members("", "a", "b", "c", "d", "e")
	var placeable []membership.Member
	zone := map[string]string{}
	for i, s := range live {
		s.Zone = []string{"x", "x", "x", "y", "y"}[i]
		zone[s.Id] = s.Zone
		placeable = append(placeable, membership.Member{ID: s.Id, Zone: s.Zone})
	}
	for i := range 50 {
		digest := searchapi.Digest{byte(i)}
		got := fanout.NewDirectory(live, 2, "").Candidates(digest)
		placed := membership.Place(digest, placeable, 2)
		if got[0].ID != placed[0] || got[1].ID != placed[1] || zone[got[0].ID] == zone[got[1].ID] {
			t.Fatalf("candidates %v, placed on %v, zones %v", got, placed, zone)
		}
	}
}

func TestConnectionsAreKept(t *testing.T) {
	var dialed []*grpc.ClientConn
	c := fanout.NewConns(func(addr string) (server.Conn, error) {
		conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
		dialed = append(dialed, conn)
		return conn, err
	})
	for _, addr := range []string{"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:1"} {
		if _, err := c.Client(addr); err != nil {
			t.Fatal(err)
		}
	}
	if len(dialed) != 2 {
		t.Fatalf("dialed %d times", len(dialed))
	}
	now, live := time.Now(), map[string]bool{"127.0.0.1:1": true}
	closed := func(i int) bool { return dialed[i].GetState() == connectivity.Shutdown }
	for _, after := range []time.Duration{0, time.Minute} {
		if err := c.Keep(live, now.Add(after)); err != nil || closed(0) || closed(1) {
			t.Errorf("after %v: %v, closed %v %v", after, err, closed(0), closed(1))
		}
	}
	if err := c.Keep(live, now.Add(time.Hour)); err != nil || closed(0) || !closed(1) {
		t.Errorf("in the end: %v, closed %v %v", err, closed(0), closed(1))
	}
	if err := c.Close(); err != nil || !closed(0) {
		t.Errorf("closed: %v", err)
	}
	if _, err := c.Client("127.0.0.1:1"); err == nil {
		t.Error("dialed after Close")
	}
}

// TestCandidatesAreRemembered: a second request for a shard costs no ranking, but gives the list of
// the first, and failures of one query do not reach the next.
func TestCandidatesAreRemembered(t *testing.T) {
	var live []*catalogv1.Searcher
	for i := range 50 {
		live = append(live, &catalogv1.Searcher{Id: fmt.Sprint("s", i), Address: fmt.Sprint("a", i)})
	}
	d := fanout.NewDirectory(live, 2, "")
	shard := searchapi.Digest{7}
	first := d.Candidates(shard)
	want := slices.Clone(first)
	if second := d.Candidates(shard); &second[0] != &first[0] {
		t.Error("ranked again")
	}
	f := fanout.Fanout{Peers: peers(t, fanout.Shares{Retries: 1}), Candidates: d.Candidates, Policy: fanout.Policy{Replicas: 2}}
	account := searchapi.NewAccount([]searchapi.Shard{{Digest: shard}})
	fails := func(context.Context, fanout.Target, []searchapi.Shard) (reply, error) {
		return reply{}, errors.New("no")
	}
	fanout.Scatter(t.Context(), f, []searchapi.Shard{{Digest: shard}}, account, fails, func([]searchapi.Digest) {})
	if account.Coverage().Failed != 1 {
		t.Error(account.Coverage())
	}
	if got := d.Candidates(shard); !slices.Equal(got, want) {
		t.Errorf("candidates are %v after a failure, were %v", got, want)
	}
}
