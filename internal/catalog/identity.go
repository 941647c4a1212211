package catalog

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// identityName is a single key outside the kinds. Its value is made once.
const identityName = "identity"

func (s *Store) identityKey() string { return s.prefix + identityName }

// Identity is a name that no other catalog has, whatever its prefix; empty if nobody made it. An
// etcd that lost everything has none.
func (s *Store) Identity(ctx context.Context) (string, error) {
	resp, err := s.client.Get(ctx, s.identityKey())
	if err != nil {
		return "", fmt.Errorf("read the identity of the catalog: %w", err)
	}
	if len(resp.Kvs) == 0 {
		return "", nil
	}
	return string(resp.Kvs[0].Value), nil
}

// MakeIdentity gives the catalog a random identity, unless it has one, and returns the one that it has.
func (s *Store) MakeIdentity(ctx context.Context, random string) (string, error) {
	resp, err := s.client.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(s.identityKey()), "=", 0)).
		Then(clientv3.OpPut(s.identityKey(), random)).Else(clientv3.OpGet(s.identityKey())).Commit()
	if err != nil {
		return "", fmt.Errorf("make the identity of the catalog: %w", err)
	}
	if resp.Succeeded {
		return random, nil
	}
	return string(resp.Responses[0].GetResponseRange().Kvs[0].Value), nil
}
