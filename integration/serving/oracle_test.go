package serving_test

import (
	"bytes"
	"cmp"
	"crypto/sha1"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trawl-search/trawl/index/build"
	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/indextest"
	"github.com/trawl-search/trawl/index/search"
	"github.com/trawl-search/trawl/internal/bucket"
	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/searchapi"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// oracle answers the query by brute force.
func (c *cluster) oracle(corpus *indextest.Corpus, text string) []indextest.Result {
	c.t.Helper()
	parsed, err := searchapi.Parse(text, 1)
	if err == nil {
		parsed, err = indextest.Resolve(corpus, parsed)
	}
	c.must(err)
	want, err := indextest.Eval(corpus, parsed)
	c.must(err)
	return want
}

// TestSameAsBruteForce spreads a random corpus over shards and searchers, runs queries of
// every kind through the router, page by page, and compares files, order and ranges with those
// of brute force.
func TestSameAsBruteForce(t *testing.T) { inOneAndInSeveral(t, testSameAsBruteForce) }

func testSameAsBruteForce(t *testing.T, oneProcess bool) {
	c := startIn(t, oneProcess, 2, 1)
	const seed = 7
	corpus := indextest.Random(seed)
	c.publishCorpus(corpus, rand.New(rand.NewPCG(seed, 1)))
	sizes := rand.New(rand.NewPCG(seed, 2))
	asked := 0
	for _, q := range indextest.Queries(corpus, seed, 250) {
		want := c.oracle(corpus, q.Text)
		got := c.allPages(q.Text, sizes)
		if a, b := describe(got), describeOracle(want); !slices.Equal(a, b) {
			t.Errorf("corpus %s, query %q (%s):\n got %q\nwant %q", corpus.Name, q.Text, q.Kind, a, b)
		}
		asked++
	}
	if asked < 150 {
		t.Errorf("only %d queries were asked", asked)
	}
}

// allPages pages through an answer in pages of random sizes and checks its order.
func (c *cluster) allPages(query string, sizes *rand.Rand) (files []*searchv1.FileMatch) {
	c.t.Helper()
	for token, pages := []byte(nil), 0; pages == 0 || token != nil; pages++ {
		resp, err := c.search.Search(c.t.Context(), &searchv1.SearchRequest{Query: query, PageToken: token, Options: &searchv1.SearchOptions{
			MaxFiles: uint32(1 + sizes.IntN(40)), MaxMatchesPerFile: 100_000, RequireComplete: true,
		}})
		if err != nil {
			c.t.Fatalf("query %q: %v", query, err)
		}
		files, token = append(files, resp.Files...), resp.NextPageToken
	}
	if !slices.IsSortedFunc(files, func(a, b *searchv1.FileMatch) int { return search.Compare(searchapi.Key(a), searchapi.Key(b)) }) {
		c.t.Errorf("query %q: pages are not in order", query)
	}
	return files
}

// describe writes each file as one line, in order of the lines.
func describe(files []*searchv1.FileMatch) (lines []string) {
	for _, f := range files {
		var ranges []string
		for _, chunk := range f.Chunks {
			for _, r := range chunk.Ranges {
				ranges = append(ranges, fmt.Sprintf("%v:%d-%d", chunk.FileName, r.Start.ByteOffset, r.End.ByteOffset))
			}
		}
		lines = append(lines, fmt.Sprintf("%s %q %v %d %v", f.Repo, f.Path, f.Branches, f.MatchCount, ranges))
	}
	slices.Sort(lines)
	return lines
}

func describeOracle(results []indextest.Result) (lines []string) {
	for _, r := range results {
		var ranges []string
		shown, fileName := r.Content, false
		if len(shown) == 0 {
			shown, fileName = r.Name, true
		}
		for _, s := range shown {
			ranges = append(ranges, fmt.Sprintf("%v:%d-%d", fileName, s.Start, s.End))
		}
		lines = append(lines, fmt.Sprintf("%s %q %v %d %v", r.Repo, r.Path, r.Branches, len(shown), ranges))
	}
	slices.Sort(lines)
	return lines
}

// publishCorpus distributes each repo's documents at random over one to three shards.
func (c *cluster) publishCorpus(corpus *indextest.Corpus, rng *rand.Rand) {
	c.t.Helper()
	for _, repo := range corpus.Repos {
		parts := make([][]build.Document, 1+rng.IntN(3))
		for _, d := range documents(repo) {
			i := rng.IntN(len(parts))
			parts[i] = append(parts[i], d)
		}
		c.publishShards(repo, func(fence int64) (refs []*catalogv1.ShardRef) {
			for _, docs := range parts {
				refs = append(refs, c.uploadDocuments(fence, part{repo, docs}))
			}
			return refs
		})
	}
}

// publishShards publishes the shards that upload makes under the fence of a lease.
func (c *cluster) publishShards(repo indextest.Repo, upload func(fence int64) []*catalogv1.ShardRef) {
	c.t.Helper()
	_, _, err := c.store.PutDesired(c.t.Context(), &catalogv1.Desired{Name: repo.Name})
	c.must(err)
	lease, err := c.store.AcquireLease(c.t.Context(), repo.Name, time.Minute)
	c.must(err)
	root := &catalogv1.Root{Repo: repo.Name, Id: zoektID(repo.Name), Generation: lease.NextGeneration(), Epoch: lease.Desired().Epoch}
	for _, b := range repo.Branches {
		root.Branches = append(root.Branches, &catalogv1.Branch{Name: b})
	}
	root.Shards = upload(lease.Fence())
	_, err = c.store.Publish(c.t.Context(), lease, lease.Root(), root)
	c.must(err)
	c.must(lease.Release(c.t.Context()))
}

// documents are the repo's, in the order that a builder wants.
func documents(repo indextest.Repo) (docs []build.Document) {
	for i, d := range repo.Documents {
		doc := build.Document{Path: []byte(d.Path), Content: d.Content, Language: d.Language, OID: objectID(d.Content)}
		for _, name := range d.Branches {
			doc.Branches = append(doc.Branches, uint32(slices.Index(repo.Branches, name)))
		}
		slices.Sort(doc.Branches)
		if d.Skipped {
			doc.Skip, doc.Size, doc.OID = docstore.Binary, 1, objectID([]byte{0, byte(i), byte(i >> 8)})
		}
		docs = append(docs, doc)
	}
	slices.SortFunc(docs, func(a, b build.Document) int {
		return cmp.Or(bytes.Compare(a.Path, b.Path), bytes.Compare(a.OID, b.OID))
	})
	return docs
}

func objectID(content []byte) []byte {
	id := sha1.Sum(fmt.Appendf(nil, "blob %d\x00%s", len(content), content))
	return id[:]
}

// part is the part of a repo that a shard holds.
type part struct {
	repo indextest.Repo
	docs []build.Document
}

func (c *cluster) uploadDocuments(fence int64, parts ...part) *catalogv1.ShardRef {
	c.t.Helper()
	var object bytes.Buffer
	b, err := build.NewBuilder(&object, build.Options{})
	c.must(err)
	ref := &catalogv1.ShardRef{Repos: uint32(len(parts))}
	for _, p := range parts {
		facts := docstore.Repo{Name: p.repo.Name, Archived: p.repo.Archived, Fork: p.repo.Fork, Public: p.repo.Public, Meta: p.repo.Meta, Rank: p.repo.Rank}
		for _, name := range p.repo.Branches {
			facts.Branches = append(facts.Branches, docstore.Branch{Name: name, Commit: strings.Repeat("c", 40)})
		}
		c.must(b.AddRepo(facts))
		for _, d := range p.docs {
			c.must(b.Add(d))
			if d.Language != "" && !slices.Contains(ref.Languages, d.Language) {
				ref.Languages = append(ref.Languages, d.Language)
			}
		}
	}
	result, err := b.Close()
	c.must(err)
	digest := searchapi.Digest(result.SHA256)
	ref.Digest, ref.Key, ref.SizeBytes = digest[:], catalog.ShardKey(fence, digest), uint64(result.Size)
	err = c.bucket.Put(c.t.Context(), ref.Key, &object, bucket.PutOptions{Size: result.Size, SHA256: result.SHA256})
	if !errors.Is(err, bucket.ErrExists) {
		c.must(err)
	}
	return ref
}
