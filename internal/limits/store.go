package limits

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/catalog/follow"
)

// Record is a limit that is set. Its JSON is the value in etcd, which etcdctl shows.
type Record struct {
	// Value has the form of the setting of the same name.
	Value string `json:"value"`
	// At is when it was set.
	At time.Time `json:"at"`
	// By says for people who set it. It holds no secret.
	By string `json:"by"`
}

// Store keeps the limits that are set in etcd. It is safe for concurrent use and needs no closing.
type Store struct {
	client *clientv3.Client
	prefix string
}

// NewStore makes a store of the records under prefix; an empty one means catalog.DefaultPrefix. The caller keeps and
// closes the client.
func NewStore(client *clientv3.Client, prefix string) *Store {
	return &Store{client: client, prefix: cmp.Or(prefix, catalog.DefaultPrefix)}
}

func (s *Store) clockKey() string       { return s.prefix + "limits.clock" }
func (s *Store) key(name string) string { return s.prefix + "limits/" + name }

// keys holds the clock and all limits: '.' sorts before '/', and '0' is the byte after it.
func (s *Store) keys() follow.Range {
	return follow.Range{From: s.clockKey(), To: s.prefix + "limits0"}
}

// tick is part of every change, with a random value: see follow.Follower.
func (s *Store) tick() clientv3.Op { return clientv3.OpPut(s.clockKey(), rand.Text()) }

// Set sets a limit, for by. It returns the value that was set before, empty if there was none. Its error wraps ErrValue if the
// limit does not take the value, and then nothing changes.
func (s *Store) Set(ctx context.Context, key Key, value, by string) (before string, err error) {
	_, limit, err := ParseKey(key.String())
	if err == nil {
		_, err = limit.parse(value)
	}
	if err != nil {
		return "", err
	}
	record, err := json.Marshal(Record{Value: value, At: time.Now().UTC(), By: by})
	if err != nil {
		return "", fmt.Errorf("encode limit: %w", err)
	}
	return s.change(ctx, key, clientv3.OpPut(s.key(key.String()), string(record)))
}

// Unset removes a limit. It returns the value that was set, empty if there was none.
func (s *Store) Unset(ctx context.Context, key Key) (before string, err error) {
	return s.change(ctx, key, clientv3.OpDelete(s.key(key.String())))
}

// change changes the record of a limit, and returns the value before.
func (s *Store) change(ctx context.Context, key Key, op clientv3.Op) (before string, err error) {
	resp, err := s.client.Txn(ctx).Then(clientv3.OpGet(s.key(key.String())), op, s.tick()).Commit()
	if err != nil {
		return "", fmt.Errorf("change limit %s: %w", key, err)
	}
	for _, kv := range resp.Responses[0].GetResponseRange().GetKvs() {
		var record Record
		if json.Unmarshal(kv.Value, &record) == nil { // else it counts as unset
			before = record.Value
		}
	}
	return before, nil
}

// List returns the limits that are set, by Key.String, also those that this version cannot use.
func (s *Store) List(ctx context.Context) (map[string]Record, error) {
	all := make(map[string]Record)
	for from, more := s.key(""), true; more; {
		resp, err := s.client.Get(ctx, from, clientv3.WithRange(s.keys().To), clientv3.WithLimit(500))
		if err != nil {
			return nil, fmt.Errorf("list limits: %w", err)
		}
		for _, kv := range resp.Kvs {
			var record Record
			name := string(kv.Key[len(s.key("")):])
			if err := json.Unmarshal(kv.Value, &record); err != nil {
				record = Record{Value: string(kv.Value)} // as it is, so that it can be seen and unset
			}
			all[name] = record
			from = string(kv.Key) + "\x00"
		}
		more = resp.More
	}
	return all, nil
}
