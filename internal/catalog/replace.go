package catalog

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/proto"

	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

const (
	// replaceRepos is how many repos one transaction takes: etcd allows 128 comparisons
	// and 128 operations, and each repo needs two of each.
	replaceRepos = 60
	// replaceBytes bounds the roots of one transaction; etcd takes 1.5 MiB.
	replaceBytes = MaxRecordBytes
)

// Replacement is one repo of a compaction, whose shards are replaced.
type Replacement struct {
	// Old is the root that the shards were merged from.
	Old Root
	// Next has the same documents in other shards, as the generation after it.
	// ReplaceShards sets its fencing token.
	Next *catalogv1.Root
}

// Roots reads the roots that the compaction may still replace: those that have not
// changed since it was planned, of repos that no job works on. A job that began later
// has a later fencing token than the claim.
func (c *Claim) Roots(ctx context.Context) ([]Root, error) {
	var roots []Root
	for inputs := range slices.Chunk(c.work.Record.GetInputs(), replaceRepos) {
		names := make([]string, len(inputs))
		for i, input := range inputs {
			names[i] = input.GetRepo()
		}
		resp, err := c.store.commit(ctx, ErrLeaseLost, []clientv3.Cmp{c.held()}, c.store.rootReads(names)...)
		if err != nil {
			return nil, fmt.Errorf("read roots of a compaction: %w", err)
		}
		for i, input := range inputs {
			root, leased, err := decodeRoot(resp.Responses[2*i:], input.GetRepo())
			if err != nil {
				return nil, err
			}
			if root.Revision == input.GetRevision() && !leased {
				roots = append(roots, root)
			}
		}
	}
	return roots, nil
}

// rootReads are two operations for each repo; decodeRoot decodes their answers.
func (s *Store) rootReads(repos []string) []clientv3.Op {
	var ops []clientv3.Op
	for _, repo := range repos {
		ops = append(ops, clientv3.OpGet(s.key(rootKind, repo)), clientv3.OpGet(s.key(leaseKind, repo), clientv3.WithCountOnly()))
	}
	return ops
}

// decodeRoot decodes the answers of one repo. A missing root has revision 0.
func decodeRoot(answers []*etcdserverpb.ResponseOp, repo string) (root Root, leased bool, err error) {
	err = decodeInto(&root, answers[0], rootKind, repo)
	return root, answers[1].GetResponseRange().GetCount() > 0, err
}

// ReplaceShards makes each Next the root of its repo. It takes several transactions,
// but changes each repo in one. It leaves a repo out if its root is no longer Old, as
// after a deletion, or if a job works on it: a compaction must not cause a job's
// publication to be refused. It returns the repos whose root is Next now.
//
// Next must be Old but for its shards, its manifest and its generation, which is one
// more; otherwise the error is ErrGeneration. Its objects must be made under the
// claim or be those of Old; otherwise the error is ErrForeignObject. ErrLeaseLost
// ends the call; some repos may have been done. After any other error it is unknown
// which were done, and the same call may be repeated: it recognises its own roots.
func (c *Claim) ReplaceShards(ctx context.Context, replacements []Replacement) (done []string, err error) {
	var batch []storedReplacement
	size := 0
	for _, f := range replacements {
		next, err := c.encodeReplacement(f)
		if err != nil {
			return done, fmt.Errorf("compact %q: %w", f.Next.GetRepo(), err)
		}
		if len(batch) == replaceRepos || size+len(next.value) > replaceBytes {
			if done, err = c.replaceBatch(ctx, batch, done); err != nil {
				return done, err
			}
			batch, size = nil, 0
		}
		batch, size = append(batch, next), size+len(next.value)
	}
	return c.replaceBatch(ctx, batch, done)
}

// storedReplacement is a replacement as it is stored.
type storedReplacement struct {
	repo  string
	old   int64
	next  *catalogv1.Root
	value string
}

func (c *Claim) encodeReplacement(f Replacement) (storedReplacement, error) {
	want := proto.CloneOf(f.Old.Record)
	want.Generation++
	want.Shards, want.ManifestKey, want.ManifestDigest = f.Next.GetShards(), f.Next.GetManifestKey(), f.Next.GetManifestDigest()
	want.Fence = f.Next.GetFence()
	if !proto.Equal(want, f.Next) {
		return storedReplacement{}, fmt.Errorf("%w: the root is not that of generation %d in other shards", ErrGeneration, f.Old.Record.GetGeneration())
	}
	if err := checkObjects([]int64{c.fence}, &f.Old, f.Next); err != nil {
		return storedReplacement{}, err
	}
	want.Fence = c.fence
	value, err := encode(want)
	return storedReplacement{repo: want.Repo, old: f.Old.Revision, next: want, value: value}, err
}

// replaceBatch does one transaction, and repeats it without the repos whose
// comparison failed.
func (c *Claim) replaceBatch(ctx context.Context, batch []storedReplacement, done []string) ([]string, error) {
	for len(batch) > 0 {
		conditions, puts := []clientv3.Cmp{c.held()}, []clientv3.Op{c.store.tick()}
		names := make([]string, len(batch))
		for i, f := range batch {
			names[i] = f.repo
			conditions = append(conditions, c.store.unchanged(rootKind, f.repo, f.old), c.store.unchanged(leaseKind, f.repo, 0))
			puts = append(puts, clientv3.OpPut(c.store.key(rootKind, f.repo), f.value))
		}
		resp, err := c.store.client.Txn(ctx).If(conditions...).Then(puts...).
			Else(append(c.store.rootReads(names), clientv3.OpGet(c.key))...).Commit()
		if err != nil {
			return done, fmt.Errorf("compact: %w", err)
		}
		if resp.Succeeded {
			return append(done, names...), nil
		}
		var rest []storedReplacement
		for i, f := range batch {
			root, leased, err := decodeRoot(resp.Responses[2*i:], f.repo)
			switch {
			case err != nil:
				return done, err
			case root.Record != nil && proto.Equal(root.Record, f.next):
				done = append(done, f.repo) // the token is this claim's alone: an earlier call did it
			case root.Revision == f.old && !leased:
				rest = append(rest, f)
			}
		}
		if kvs := resp.Responses[2*len(batch)].GetResponseRange().GetKvs(); len(rest) > 0 && (len(kvs) == 0 || kvs[0].CreateRevision != c.fence) {
			return done, fmt.Errorf("compact: %w", ErrLeaseLost)
		}
		batch = rest
	}
	return done, nil
}

// clipText cuts a text to at most n bytes, to valid UTF-8.
func clipText(text string, n int) string {
	return strings.ToValidUTF8(text[:min(n, len(text))], "")
}
