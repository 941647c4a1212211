package search

import (
	"bytes"
	"runtime"
	"testing"

	"github.com/trawl-search/trawl/index/build"
	"github.com/trawl-search/trawl/index/format"
)

// TestPreparingAHelperFreesProcessors: the processors of a team are free again if preparing a helper panics.
func TestPreparingAHelperFreesProcessors(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(3))
	var data bytes.Buffer
	builder, err := build.NewBuilder(&data, build.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := builder.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := format.NewFile("empty", data.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	s, err := OpenFile(f)
	if err != nil {
		t.Fatal(err)
	}
	run := s.begin(t.Context(), nil, Options{})
	defer run.release()
	func() {
		defer func() {
			if recover() == nil {
				t.Error("no helper was prepared")
			}
		}()
		run.team(nil, func(*search) { panic("preparing a helper fails") }, (*search).help)
	}()
	if n := helping.Load(); n != 0 {
		t.Errorf("%d processors are taken", n)
	}
}
