package access

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/catalog/follow"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// ErrNoToken means that there is no token with that id.
var ErrNoToken = errors.New("there is no such token")

// maxTokens bounds the tokens: every router holds all of them.
const maxTokens = 100_000

// Store keeps tokens and the key of plans in etcd. It is safe for concurrent
// use and needs no closing.
type Store struct {
	client *clientv3.Client
	prefix string
}

// NewStore makes a store of the records under prefix; an empty one means
// catalog.DefaultPrefix. The caller keeps and closes the client.
func NewStore(client *clientv3.Client, prefix string) *Store {
	return &Store{client: client, prefix: cmp.Or(prefix, catalog.DefaultPrefix)}
}

func (s *Store) clockKey() string          { return s.prefix + "access.clock" }
func (s *Store) planKey() string           { return s.prefix + "access.key" }
func (s *Store) tokenKey(id string) string { return s.prefix + "access/tokens/" + id }

// tokenRange holds the clock and all tokens: '.' sorts before '/', and '0' is
// the byte after it.
func (s *Store) tokenRange() follow.Range {
	return follow.Range{From: s.clockKey(), To: s.prefix + "access/tokens0"}
}

// tick is part of every change of a token, with a random value: see follow.Follower.
func (s *Store) tick() clientv3.Op { return clientv3.OpPut(s.clockKey(), rand.Text()) }

// Create makes a token. Its text cannot be recovered later.
func (s *Store) Create(ctx context.Context, spec Spec) (Text, *catalogv1.Token, error) {
	if err := spec.Check(); err != nil {
		return "", nil, fmt.Errorf("create token: %w", err)
	}
	count, err := s.client.Get(ctx, s.tokenKey(""), clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		return "", nil, fmt.Errorf("create token: %w", err)
	}
	if count.Count >= maxTokens {
		return "", nil, fmt.Errorf("create token: there are %d, which is the most; revoke some", count.Count)
	}
	text, id, digest := mint()
	now := time.Now()
	record := &catalogv1.Token{
		Id: id, SecretSha256: digest[:], Name: spec.Name, Allow: spec.Allow, Deny: spec.Deny, CreatedAt: timestamppb.New(now),
	}
	for _, scope := range spec.Scopes {
		record.Scopes = append(record.Scopes, string(scope))
	}
	if spec.Lifetime > 0 {
		record.ExpiresAt = timestamppb.New(now.Add(spec.Lifetime))
	}
	value, err := proto.Marshal(record)
	if err != nil {
		return "", nil, fmt.Errorf("encode token: %w", err)
	}
	if _, err := s.client.Txn(ctx).Then(clientv3.OpPut(s.tokenKey(id), string(value)), s.tick()).Commit(); err != nil {
		return "", nil, fmt.Errorf("create token: %w", err)
	}
	return text, record, nil
}

// Revoke ends a token; ErrNoToken if there is none. Routers refuse it as soon as their
// watch reports the change, and at the latest when their allowed staleness ends.
func (s *Store) Revoke(ctx context.Context, id string) error {
	resp, err := s.client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(s.tokenKey(id)), ">", 0)).
		Then(clientv3.OpDelete(s.tokenKey(id)), s.tick()).Commit()
	if err != nil {
		return fmt.Errorf("revoke token: %w", err)
	}
	if !resp.Succeeded {
		return fmt.Errorf("revoke token: %w", ErrNoToken)
	}
	return nil
}

// List returns all tokens, the oldest first. Nobody can recover their secrets.
func (s *Store) List(ctx context.Context) ([]*catalogv1.Token, error) {
	var tokens []*catalogv1.Token
	keys := s.tokenRange()
	for from, more := s.tokenKey(""), true; more; {
		resp, err := s.client.Get(ctx, from, clientv3.WithRange(keys.To), clientv3.WithLimit(500))
		if err != nil {
			return nil, fmt.Errorf("list tokens: %w", err)
		}
		for _, kv := range resp.Kvs {
			record := &catalogv1.Token{}
			if err := proto.Unmarshal(kv.Value, record); err != nil {
				return nil, fmt.Errorf("decode token: %w", err)
			}
			tokens = append(tokens, record)
			from = string(kv.Key) + "\x00"
		}
		more = resp.More
	}
	slices.SortStableFunc(tokens, func(a, b *catalogv1.Token) int { return a.CreatedAt.AsTime().Compare(b.CreatedAt.AsTime()) })
	return tokens, nil
}
