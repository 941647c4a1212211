package embedded

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3rpc"
	"go.etcd.io/etcd/server/v3/proxy/grpcproxy/adapter"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// errClosing is gRPC's error of a call on a closed connection.
var errClosing = status.Error(codes.Canceled, "the etcd client is closing")

// localKV calls the server's implementation of the KV service directly. Every
// query reads a revision from etcd, and on a socket that costs more than all the
// rest of a query that finds nothing.
//
// The server must not be called once it closes its database. So close waits for the
// running calls, which end by themselves while the server runs, and refuses later
// ones.
type localKV struct {
	kv     etcdserverpb.KVClient
	server *etcdserver.EtcdServer

	last atomic.Pointer[lastRead]

	calls  sync.RWMutex // held for reading by each call
	closed bool         // guarded by calls
}

func newLocalKV(server *etcdserver.EtcdServer) *localKV {
	return &localKV{kv: adapter.KvServerToKvClient(v3rpc.NewQuotaKVServer(server)), server: server}
}

// use makes the client's reads, writes and transactions local. Leases and watches
// stay on the socket: they are few and long-lived.
func (k *localKV) use(client *clientv3.Client) { client.KV = clientv3.NewKVFromKVClient(k, client) }

func (k *localKV) close() {
	k.calls.Lock()
	defer k.calls.Unlock()
	k.closed = true
}

// locally makes a call unless the client is closed, or the caller's time is over.
func locally[Q, R any](ctx context.Context, k *localKV, call func(context.Context, *Q, ...grpc.CallOption) (*R, error), req *Q) (*R, error) {
	k.calls.RLock()
	defer k.calls.RUnlock()
	if k.closed {
		return nil, errClosing
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return call(ctx, req)
}

// alone reports whether this server is the only member of its cluster, and works.
// Then a read of its own state is linearizable without raft: the server acknowledges
// a write once it has applied it, and no other server acknowledges any.
func (k *localKV) alone() bool {
	select {
	case <-k.server.StoppingNotify():
		return false
	default:
		return len(k.server.Cluster().Members()) == 1
	}
}

// Range implements etcdserverpb.KVClient.
func (k *localKV) Range(ctx context.Context, req *etcdserverpb.RangeRequest, _ ...grpc.CallOption) (*etcdserverpb.RangeResponse, error) {
	return locally(ctx, k, k.read, req)
}

// read does not read an unchanged store again. Every query reads one key, and etcd's
// transaction for that takes ten times as long as checking the store's revision.
func (k *localKV) read(ctx context.Context, req *etcdserverpb.RangeRequest, _ ...grpc.CallOption) (*etcdserverpb.RangeResponse, error) {
	if !k.alone() {
		return k.kv.Range(ctx, req)
	}
	req.Serializable = true
	if !readsOneKey(req) {
		return k.kv.Range(ctx, req)
	}
	if last := k.last.Load(); last != nil && last.key == string(req.Key) && last.answer.Header.Revision == k.server.KV().Rev() {
		return last.again(), nil
	}
	resp, err := k.kv.Range(ctx, req)
	if err != nil {
		return nil, err
	}
	last := &lastRead{string(req.Key), resp}
	k.last.Store(last)
	return last.again(), nil
}

// lastRead is the answer for a key as of a revision of the whole store, that in the
// header.
type lastRead struct {
	key    string
	answer *etcdserverpb.RangeResponse
}

// again is the answer for one more caller. Callers share the records.
func (r *lastRead) again() *etcdserverpb.RangeResponse {
	header := r.answer.Header
	return &etcdserverpb.RangeResponse{
		Header: &etcdserverpb.ResponseHeader{
			ClusterId: header.ClusterId, MemberId: header.MemberId, Revision: header.Revision, RaftTerm: header.RaftTerm,
		},
		Kvs: slices.Clone(r.answer.Kvs), More: r.answer.More, Count: r.answer.Count,
	}
}

// readsOneKey reports whether the request is for a key as it is now.
func readsOneKey(r *etcdserverpb.RangeRequest) bool {
	return len(r.RangeEnd) == 0 && r.Revision == 0 && !r.KeysOnly && !r.CountOnly &&
		r.MinModRevision|r.MaxModRevision|r.MinCreateRevision|r.MaxCreateRevision == 0
}

// RangeStream implements etcdserverpb.KVClient. The local server has none.
func (k *localKV) RangeStream(ctx context.Context, req *etcdserverpb.RangeRequest, opts ...grpc.CallOption) (etcdserverpb.KV_RangeStreamClient, error) {
	return k.kv.RangeStream(ctx, req, opts...)
}

// Put implements etcdserverpb.KVClient.
func (k *localKV) Put(ctx context.Context, req *etcdserverpb.PutRequest, _ ...grpc.CallOption) (*etcdserverpb.PutResponse, error) {
	return locally(ctx, k, k.kv.Put, req)
}

// DeleteRange implements etcdserverpb.KVClient.
func (k *localKV) DeleteRange(ctx context.Context, req *etcdserverpb.DeleteRangeRequest, _ ...grpc.CallOption) (*etcdserverpb.DeleteRangeResponse, error) {
	return locally(ctx, k, k.kv.DeleteRange, req)
}

// Txn implements etcdserverpb.KVClient.
func (k *localKV) Txn(ctx context.Context, req *etcdserverpb.TxnRequest, _ ...grpc.CallOption) (*etcdserverpb.TxnResponse, error) {
	return locally(ctx, k, k.kv.Txn, req)
}

// Compact implements etcdserverpb.KVClient.
func (k *localKV) Compact(ctx context.Context, req *etcdserverpb.CompactionRequest, _ ...grpc.CallOption) (*etcdserverpb.CompactionResponse, error) {
	return locally(ctx, k, k.kv.Compact, req)
}
