package compact

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/trawl-search/trawl/internal/bucket"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// repeated is a bucket whose client repeats each upload, and so finds its own object there.
type repeated struct {
	bucket.Bucket

	t *testing.T
}

func (b repeated) Put(ctx context.Context, key string, r io.Reader, opts bucket.PutOptions) error {
	if !opts.IfAbsent || opts.SHA256 == [32]byte{} {
		b.t.Errorf("%s is put by %+v", key, opts)
	}
	return errors.Join(b.Bucket.Put(ctx, key, r, opts), bucket.ErrExists)
}

// TestUploadIsRepeated: an upload replaces nothing, has a digest, and may find its object there
// from an earlier attempt of the same request. Manifests keep the request.
func TestUploadIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTrial(t, 0, nil)
		x.Bucket = repeated{x.world.bucket, t}
		if _, did, err := x.next(t.Context()); !did || err != nil || x.runs(compacted) != 1 {
			t.Errorf("%t, %v", did, err)
		}
		x.check("after")
		for root, err := range x.truth.ListRoots(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			content, _, err := x.world.bucket.Get(t.Context(), root.Record.GetManifestKey())
			if err != nil {
				t.Fatal(err)
			}
			data, err := io.ReadAll(content)
			manifest := &catalogv1.Manifest{}
			if err := errors.Join(err, proto.Unmarshal(data, manifest)); err != nil || manifest.GetDesired().GetName() != root.Record.GetRepo() {
				t.Errorf("the manifest of %s is %v, %v", root.Record.GetRepo(), manifest, err)
			}
		}
		x.clean()
	})
}

// TestDeltasOfLargeBase: the deltas of a repo are merged among themselves, and its base
// stays as it is.
func TestDeltasOfLargeBase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var large strings.Builder
		for i := range 20_000 {
			fmt.Fprintf(&large, "%x\n", i*i*7919)
		}
		docs := files{"large.txt": large.String()}
		for i := range 4 {
			w.publish("example.com/repo", docs, i > 0)
			docs = files{"large.txt": docs["large.txt"], "a": docs["a"], "b": docs["b"], "c": docs["c"]}
			docs[string(rune('a'+i))] = fmt.Sprint("delta ", i)
		}
		before, err := w.truth.GetRoot(t.Context(), "example.com/repo")
		if err != nil {
			t.Fatal(err)
		}
		if err := w.scheduler(nil).Pass(t.Context(), time.Now()); err != nil {
			t.Fatal(err)
		}
		if did, err := w.worker(nil).Next(t.Context()); !did || err != nil {
			t.Fatalf("%t, %v", did, err)
		}
		w.check("after")
		after, err := w.truth.GetRoot(t.Context(), "example.com/repo")
		if err != nil {
			t.Fatal(err)
		}
		if b, a := before.Record.Shards, after.Record.Shards; len(b) < 4 || len(a) >= len(b) || a[0].GetKey() != b[0].GetKey() {
			t.Errorf("%v became %v", b, a)
		}
	})
}

// TestStalePlansGo: a plan whose repos have all changed goes at the next pass.
func TestStalePlansGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTrial(t, 0, nil)
		old := x.planned().Name
		for i := range 2 * fanIn {
			x.publish(fmt.Sprintf("example.com/repo-%02d", i), files{"a.go": fmt.Sprint("changed ", i)}, false)
		}
		if err := x.scheduler(nil).Pass(t.Context(), time.Now()); err != nil {
			t.Fatal(err)
		}
		if c := x.planned(); c != nil && c.Name == old {
			t.Errorf("%v is planned still", c.Record)
		}
	})
}
