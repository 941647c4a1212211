package cluster

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/trawl-search/trawl/integration/cluster/faults"
	"github.com/trawl-search/trawl/internal/testrun"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// healthyNATS waits until a server has caught up.
func (c *cluster) healthyNATS(n *node) {
	c.t.Helper()
	testrun.Eventually(c.t, n.name+" is healthy", func(ctx context.Context) error {
		at, err := n.PortEndpoint(ctx, "8222/tcp", "http")
		if err != nil {
			return err
		}
		text, status, err := get(ctx, at+"/healthz")
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("status %d: %s", status, text)
		}
		return err
	})
}

// TestEtcdLeaderKilled: the leader of three members is killed, twice. Linearizable queries
// and publishing go on.
func TestEtcdLeaderKilled(t *testing.T) {
	c := newCluster(t, layout{
		etcd: 3, searchers: 2,
		// The default TTL, with which an election must not cost the searchers their leases.
		searcherArgs: []string{"--lease-ttl", "10s"},
	})
	repos := c.newRepositories("repo", 3)
	c.index(repos...)
	c.expect(repos...)
	for round := range 2 {
		leader := c.etcdLeader()
		stop := c.asking(queryTime, repos...)
		leader.kill(t)
		time.Sleep(3 * time.Second)
		l := stop()
		if l.incomplete > 0 || len(l.failed) > 0 || l.complete == 0 {
			t.Error("queries did not go on")
		}
		repos[round].commit(c.rng, 3, 20)
		c.index(repos[round])
		c.expect(repos...)
		leader.restart(t)
		c.healthyEtcd(leader)
	}
}

// etcdLeader asks the members which of them leads.
func (c *cluster) etcdLeader() (leader *node) {
	c.t.Helper()
	testrun.Eventually(c.t, "etcd has a leader", func(ctx context.Context) error {
		for _, n := range c.etcd {
			answer, err := etcdStatus(ctx, n)
			if err != nil {
				return err
			}
			if answer.Leader == answer.Header.MemberId {
				leader = n
			}
		}
		if leader == nil {
			return fmt.Errorf("none of %d members leads", len(c.etcd))
		}
		return nil
	})
	return leader
}

// healthyEtcd waits until a member follows a leader again.
func (c *cluster) healthyEtcd(n *node) {
	c.t.Helper()
	testrun.Eventually(c.t, n.name+" is back", func(ctx context.Context) error {
		answer, err := etcdStatus(ctx, n)
		if err == nil && (answer.Leader == 0 || len(answer.Errors) > 0) {
			err = fmt.Errorf("leader %d, %v", answer.Leader, answer.Errors)
		}
		return err
	})
}

func etcdStatus(ctx context.Context, n *node) (*clientv3.StatusResponse, error) {
	at, err := n.PortEndpoint(ctx, "2379/tcp", "")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{at}, DialTimeout: 5 * time.Second})
	if err != nil {
		return nil, err
	}
	defer client.Close()
	return client.Status(ctx, at)
}

// TestRouterWithoutEtcd: a router that gets no answer from etcd searches nothing for linearizable queries, and says so,
// and answers queries of bounded consistency from what it knows.
func TestRouterWithoutEtcd(t *testing.T) {
	c := newCluster(t, layout{proxiedEtcd: true, searchers: 2})
	repos := c.newRepositories("repo", 3)
	c.index(repos...)
	c.expect(repos...)

	c.toEtcd.Set(faults.TCPFault{Cut: true})
	const deadline = 2 * time.Second
	answer, err := c.clients[0].query(t.Context(), heron, deadline, nil)
	code := status.Code(err)
	if unread := err == nil && answer.GetCoverage().GetSearched() == 0 && !answer.GetCoverage().GetComplete(); !unread && code != codes.DeadlineExceeded && code != codes.Unavailable {
		t.Errorf("without etcd an answer claims to be current: %v, %v", answer.GetCoverage(), err)
	}
	bounded := &searchv1.SearchOptions{Consistency: &searchv1.Consistency{
		Level: &searchv1.Consistency_Bounded{Bounded: durationpb.New(time.Hour)},
	}}
	answer, err = c.clients[0].query(t.Context(), heron, queryTime, bounded)
	if err == nil {
		err = complete(answer, repos)
	}
	if err != nil {
		t.Errorf("bounded consistency without etcd: %v", err)
	}

	c.toEtcd.Set(faults.TCPFault{})
	c.expect(repos...)
	for _, f := range []faults.TCPFault{{Reset: true}, {Delay: 100 * time.Millisecond}, {BytesPerSecond: 5000}} {
		c.toEtcd.Set(f)
		time.Sleep(500 * time.Millisecond)
		if f.Reset {
			c.toEtcd.Set(faults.TCPFault{})
		}
		r := repos[c.rng.IntN(len(repos))]
		r.commit(c.rng, 3, 20)
		c.index(r)
		c.expect(repos...)
		c.toEtcd.Set(faults.TCPFault{})
	}
}
