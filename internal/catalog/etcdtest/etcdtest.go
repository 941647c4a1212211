// Package etcdtest is etcd as a model in memory: keys with all their revisions,
// transactions, leases and watches, behind the interfaces of etcd's own client.
// It needs neither a network nor real time, so that tests can run many thousand
// schedules in a bubble of testing/synctest. Its own test holds it against etcd.
// For tests with a real etcd there is Grant.
package etcdtest

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"sync"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/trawl-search/trawl/internal/wait"
)

// Server is one etcd. It is safe for concurrent use and holds no goroutine but
// those of leases that are kept alive and of watches, which end with their
// contexts.
type Server struct {
	mu       sync.Mutex
	revision int64
	// keys has every version of every key, the oldest first. A deletion is a
	// version without key.
	keys    map[string][]*mvccpb.KeyValue
	leases  map[clientv3.LeaseID]*lease
	granted int64
	changed wait.Change
}

// New makes an empty etcd. Its first revision is 1, as etcd's is.
func New() *Server {
	return &Server{
		revision: 1, keys: map[string][]*mvccpb.KeyValue{}, leases: map[clientv3.LeaseID]*lease{},
	}
}

// Client makes a client. Between is called before each operation reaches the server
// and again before its answer comes back; nil calls nothing. Its error becomes that
// of the operation, which then has not happened if the call came before, and has
// happened if it came after.
func (s *Server) Client(between func(ctx context.Context) error) *clientv3.Client {
	if between == nil {
		between = context.Context.Err
	}
	c := clientv3.NewCtxClient(context.Background())
	wire := link{s, between}
	c.KV = clientv3.NewKVFromKVClient(wire, c)
	c.Lease = leases{wire}
	c.Watcher = watcher{wire}
	return c
}

// link is the way from a client to the server.
type link struct {
	*Server

	between func(ctx context.Context) error
}

// call does one operation on its way there and back.
func call[T any](ctx context.Context, l link, do func(*Server) (T, error)) (answer T, err error) {
	if err := l.between(ctx); err != nil {
		return answer, err
	}
	l.mu.Lock()
	l.expire()
	done, err := do(l.Server)
	l.mu.Unlock()
	if err != nil {
		return answer, err
	}
	return done, l.between(ctx)
}

// Range implements etcdserverpb.KVClient.
func (l link) Range(ctx context.Context, r *etcdserverpb.RangeRequest, _ ...grpc.CallOption) (*etcdserverpb.RangeResponse, error) {
	return call(ctx, l, func(s *Server) (*etcdserverpb.RangeResponse, error) { return s.read(r) })
}

// Put implements etcdserverpb.KVClient.
func (l link) Put(ctx context.Context, r *etcdserverpb.PutRequest, _ ...grpc.CallOption) (*etcdserverpb.PutResponse, error) {
	answer, err := l.Txn(ctx, &etcdserverpb.TxnRequest{Success: []*etcdserverpb.RequestOp{
		{Request: &etcdserverpb.RequestOp_RequestPut{RequestPut: r}},
	}})
	return &etcdserverpb.PutResponse{Header: answer.GetHeader()}, err
}

// DeleteRange implements etcdserverpb.KVClient.
func (l link) DeleteRange(ctx context.Context, r *etcdserverpb.DeleteRangeRequest, _ ...grpc.CallOption) (*etcdserverpb.DeleteRangeResponse, error) {
	answer, err := l.Txn(ctx, &etcdserverpb.TxnRequest{Success: []*etcdserverpb.RequestOp{
		{Request: &etcdserverpb.RequestOp_RequestDeleteRange{RequestDeleteRange: r}},
	}})
	return &etcdserverpb.DeleteRangeResponse{Header: answer.GetHeader()}, err
}

// Txn implements etcdserverpb.KVClient.
func (l link) Txn(ctx context.Context, r *etcdserverpb.TxnRequest, _ ...grpc.CallOption) (*etcdserverpb.TxnResponse, error) {
	return call(ctx, l, func(s *Server) (*etcdserverpb.TxnResponse, error) { return s.transact(r) })
}

// Compact implements etcdserverpb.KVClient. The model never forgets.
func (link) Compact(context.Context, *etcdserverpb.CompactionRequest, ...grpc.CallOption) (*etcdserverpb.CompactionResponse, error) {
	return &etcdserverpb.CompactionResponse{}, nil
}

// RangeStream implements etcdserverpb.KVClient; the client does not use it.
func (link) RangeStream(context.Context, *etcdserverpb.RangeRequest, ...grpc.CallOption) (grpc.ServerStreamingClient[etcdserverpb.RangeStreamResponse], error) {
	return nil, rpctypes.ErrGRPCNotCapable
}

// at is a key as of a revision; nil if it was not there.
func (s *Server) at(key string, revision int64) *mvccpb.KeyValue {
	for _, kv := range slices.Backward(s.keys[key]) {
		if kv.ModRevision <= revision {
			if kv.Key == nil {
				return nil
			}
			return kv
		}
	}
	return nil
}

// within lists the keys of a range as of a revision, in order.
func (s *Server) within(key, end []byte, revision int64) (found []*mvccpb.KeyValue) {
	if len(end) == 0 {
		if kv := s.at(string(key), revision); kv != nil {
			found = append(found, kv)
		}
		return found
	}
	for name := range s.keys {
		if kv := s.at(name, revision); kv != nil && inRange(kv.Key, key, end) {
			found = append(found, kv)
		}
	}
	slices.SortFunc(found, func(a, b *mvccpb.KeyValue) int { return bytes.Compare(a.Key, b.Key) })
	return found
}

// inRange: an end of one zero byte means all keys from the first.
func inRange(name, key, end []byte) bool {
	return bytes.Compare(name, key) >= 0 && (bytes.Equal(end, []byte{0}) || bytes.Compare(name, end) < 0)
}

func (s *Server) header() *etcdserverpb.ResponseHeader {
	return &etcdserverpb.ResponseHeader{Revision: s.revision}
}

func (s *Server) read(r *etcdserverpb.RangeRequest) (*etcdserverpb.RangeResponse, error) {
	if r.Revision > s.revision {
		return nil, rpctypes.ErrGRPCFutureRev
	}
	found := s.within(r.Key, r.RangeEnd, cmp.Or(r.Revision, s.revision))
	// Count is of the whole range, whatever the filter.
	answer := &etcdserverpb.RangeResponse{Header: s.header(), Count: int64(len(found))}
	found = slices.DeleteFunc(found, func(kv *mvccpb.KeyValue) bool {
		return r.MaxCreateRevision > 0 && kv.CreateRevision > r.MaxCreateRevision
	})
	if r.SortTarget == etcdserverpb.RangeRequest_CREATE {
		slices.SortStableFunc(found, func(a, b *mvccpb.KeyValue) int {
			if r.SortOrder == etcdserverpb.RangeRequest_DESCEND {
				a, b = b, a
			}
			return cmp.Compare(a.CreateRevision, b.CreateRevision)
		})
	}
	if r.Limit > 0 && int64(len(found)) > r.Limit {
		found, answer.More = found[:r.Limit], true
	}
	if !r.CountOnly {
		answer.Kvs = found
	}
	return answer, nil
}

func (s *Server) transact(r *etcdserverpb.TxnRequest) (*etcdserverpb.TxnResponse, error) {
	ops, holds := r.Success, true
	for _, c := range r.Compare {
		if !s.compare(c) {
			ops, holds = r.Failure, false
			break
		}
	}
	// All changes of one transaction have one revision.
	next, writes := s.revision+1, false
	answer := &etcdserverpb.TxnResponse{Succeeded: holds}
	for _, op := range ops {
		switch o := op.Request.(type) {
		case *etcdserverpb.RequestOp_RequestRange:
			found, err := s.read(o.RequestRange)
			if err != nil {
				return nil, err
			}
			answer.Responses = append(answer.Responses, &etcdserverpb.ResponseOp{Response: &etcdserverpb.ResponseOp_ResponseRange{ResponseRange: found}})
			continue
		case *etcdserverpb.RequestOp_RequestPut:
			if err := s.put(o.RequestPut, next); err != nil {
				return nil, err
			}
			writes = true
		case *etcdserverpb.RequestOp_RequestDeleteRange:
			writes = s.remove(s.within(o.RequestDeleteRange.Key, o.RequestDeleteRange.RangeEnd, next), next) || writes
		}
		answer.Responses = append(answer.Responses, &etcdserverpb.ResponseOp{})
	}
	if writes {
		s.advance()
	}
	answer.Header = s.header()
	return answer, nil
}

// advance makes what was written visible.
func (s *Server) advance() {
	s.revision++
	s.changed.Notify()
}

func (s *Server) compare(c *etcdserverpb.Compare) bool {
	kv := s.at(string(c.Key), s.revision)
	if kv == nil {
		if c.Target == etcdserverpb.Compare_VALUE {
			return false // a missing key has no value to compare
		}
		kv = &mvccpb.KeyValue{}
	}
	var order int
	switch c.Target {
	case etcdserverpb.Compare_CREATE:
		order = cmp.Compare(kv.CreateRevision, c.GetCreateRevision())
	case etcdserverpb.Compare_MOD:
		order = cmp.Compare(kv.ModRevision, c.GetModRevision())
	case etcdserverpb.Compare_VERSION:
		order = cmp.Compare(kv.Version, c.GetVersion())
	case etcdserverpb.Compare_VALUE:
		order = bytes.Compare(kv.Value, c.GetValue())
	case etcdserverpb.Compare_LEASE:
		order = cmp.Compare(kv.Lease, c.GetLease())
	}
	switch c.Result {
	case etcdserverpb.Compare_GREATER:
		return order > 0
	case etcdserverpb.Compare_LESS:
		return order < 0
	case etcdserverpb.Compare_NOT_EQUAL:
		return order != 0
	case etcdserverpb.Compare_EQUAL:
	}
	return order == 0
}

func (s *Server) put(r *etcdserverpb.PutRequest, revision int64) error {
	if _, ok := s.leases[clientv3.LeaseID(r.Lease)]; r.Lease != 0 && !ok {
		return rpctypes.ErrGRPCLeaseNotFound
	}
	name := string(r.Key)
	next := &mvccpb.KeyValue{
		Key: bytes.Clone(r.Key), Value: bytes.Clone(r.Value), Lease: r.Lease, CreateRevision: revision, ModRevision: revision, Version: 1,
	}
	if old := s.at(name, revision); old != nil {
		next.CreateRevision, next.Version = old.CreateRevision, old.Version+1
	}
	s.keys[name] = append(s.keys[name], next)
	return nil
}

func (s *Server) remove(kvs []*mvccpb.KeyValue, revision int64) bool {
	for _, kv := range kvs {
		name := string(kv.Key)
		s.keys[name] = append(s.keys[name], &mvccpb.KeyValue{ModRevision: revision})
	}
	return len(kvs) > 0
}
