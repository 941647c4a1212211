package etcdtest

import (
	"context"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// lease is one etcd lease.
type lease struct {
	ttl  time.Duration
	ends time.Time
}

// expire ends the leases whose time is up. Every operation calls it first, so no one
// sees a key of an expired lease.
func (s *Server) expire() {
	now := time.Now()
	for id, l := range s.leases {
		if !now.Before(l.ends) {
			s.revoke(id)
		}
	}
}

func (s *Server) revoke(id clientv3.LeaseID) {
	delete(s.leases, id)
	var gone []*mvccpb.KeyValue
	for name := range s.keys {
		if kv := s.at(name, s.revision); kv != nil && kv.Lease == int64(id) {
			gone = append(gone, kv)
		}
	}
	if s.remove(gone, s.revision+1) {
		s.advance()
	}
}

// Expire ends the lease of a key, as if its holder had been silent for too long. It
// reports whether there was one.
func (s *Server) Expire(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	kv := s.at(key, s.revision)
	if kv == nil || kv.Lease == 0 {
		return false
	}
	s.revoke(clientv3.LeaseID(kv.Lease))
	return true
}

// leases is the client's side of leases.
type leases struct{ link }

var _ clientv3.Lease = leases{}

// Grant implements clientv3.Lease.
func (l leases) Grant(ctx context.Context, ttl int64) (*clientv3.LeaseGrantResponse, error) {
	return call(ctx, l.link, func(s *Server) (*clientv3.LeaseGrantResponse, error) {
		s.granted++
		id, d := clientv3.LeaseID(s.granted), time.Duration(ttl)*time.Second
		s.leases[id] = &lease{ttl: d, ends: time.Now().Add(d)}
		return &clientv3.LeaseGrantResponse{ResponseHeader: s.header(), ID: id, TTL: ttl}, nil
	})
}

// Revoke implements clientv3.Lease.
func (l leases) Revoke(ctx context.Context, id clientv3.LeaseID) (*clientv3.LeaseRevokeResponse, error) {
	return call(ctx, l.link, func(s *Server) (*clientv3.LeaseRevokeResponse, error) {
		if s.leases[id] == nil {
			return nil, rpctypes.ErrLeaseNotFound
		}
		s.revoke(id)
		return &clientv3.LeaseRevokeResponse{Header: s.header()}, nil
	})
}

// KeepAliveOnce implements clientv3.Lease.
func (l leases) KeepAliveOnce(ctx context.Context, id clientv3.LeaseID) (*clientv3.LeaseKeepAliveResponse, error) {
	return call(ctx, l.link, func(s *Server) (*clientv3.LeaseKeepAliveResponse, error) {
		kept := s.leases[id]
		if kept == nil {
			return nil, rpctypes.ErrLeaseNotFound
		}
		kept.ends = time.Now().Add(kept.ttl)
		return &clientv3.LeaseKeepAliveResponse{ResponseHeader: s.header(), ID: id, TTL: int64(kept.ttl / time.Second)}, nil
	})
}

// KeepAlive implements clientv3.Lease: three signs in each time to live.
func (l leases) KeepAlive(ctx context.Context, id clientv3.LeaseID) (<-chan *clientv3.LeaseKeepAliveResponse, error) {
	answer, err := l.KeepAliveOnce(ctx, id)
	if err != nil {
		return nil, err
	}
	beats := make(chan *clientv3.LeaseKeepAliveResponse, 1)
	go func() {
		defer close(beats)
		for err == nil {
			select {
			case beats <- answer:
			default: // as etcd's client does when nobody listens
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(time.Duration(answer.TTL) * time.Second / 3):
			}
			answer, err = l.KeepAliveOnce(ctx, id)
		}
	}()
	return beats, nil
}

// TimeToLive implements clientv3.Lease; the model does not need it.
func (leases) TimeToLive(context.Context, clientv3.LeaseID, ...clientv3.LeaseOption) (*clientv3.LeaseTimeToLiveResponse, error) {
	return nil, rpctypes.ErrNotCapable
}

// Leases implements clientv3.Lease.
func (l leases) Leases(ctx context.Context) (*clientv3.LeaseLeasesResponse, error) {
	return call(ctx, l.link, func(s *Server) (*clientv3.LeaseLeasesResponse, error) {
		answer := &clientv3.LeaseLeasesResponse{ResponseHeader: s.header()}
		for id := range s.leases {
			answer.Leases = append(answer.Leases, clientv3.LeaseStatus{ID: id})
		}
		return answer, nil
	})
}

// Close implements clientv3.Lease.
func (leases) Close() error { return nil }
