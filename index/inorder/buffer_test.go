package inorder_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/trawl-search/trawl/index/inorder"
)

// TestBuffer writes more and less than fits into memory, and reads everything twice,
// with more writes in between.
func TestBuffer(t *testing.T) {
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 0))
		dir := t.TempDir()
		b := inorder.NewBuffer(inorder.BufferConfig{Dir: dir, Memory: 1 + random.Int64N(1<<20)})
		var want []byte
		for range 2 {
			for range random.IntN(30) {
				piece := make([]byte, random.IntN(1+random.IntN(300_000)))
				for i := range piece {
					piece[i] = byte(random.Uint32())
				}
				if n, err := b.Write(piece); n != len(piece) || err != nil {
					t.Fatalf("%d of %d bytes written: %v", n, len(piece), err)
				}
				want = append(want, piece...)
			}
			var got bytes.Buffer
			n, err := b.WriteTo(&got)
			if err != nil || n != int64(len(want)) || !bytes.Equal(got.Bytes(), want) {
				t.Fatalf("seed %d: read %d bytes of %d: %v", seed, n, len(want), err)
			}
		}
		if names, err := os.ReadDir(dir); err != nil || len(names) > 0 {
			t.Errorf("the folder has %v (%v)", names, err)
		}
		for range 2 {
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestBound: bytes up to the bound need no folder, and the next byte does.
func TestBound(t *testing.T) {
	b := inorder.NewBuffer(inorder.BufferConfig{Dir: filepath.Join(t.TempDir(), "absent"), Memory: 1000})
	defer b.Close()
	if _, err := b.Write(make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Write(make([]byte, 1)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("past the bound: %v", err)
	}
}

// TestFailingWriter: Buffer returns an error of the writer unchanged.
func TestFailingWriter(t *testing.T) {
	for _, memory := range []int64{1, 1 << 20} {
		b := inorder.NewBuffer(inorder.BufferConfig{Dir: t.TempDir(), Memory: memory})
		if _, err := b.Write(make([]byte, 5000)); err != nil {
			t.Fatal(err)
		}
		if _, err := b.WriteTo(failing{}); !errors.Is(err, errFull) {
			t.Errorf("%d bytes in memory: %v", memory, err)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
}

var errFull = errors.New("full")

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errFull }
