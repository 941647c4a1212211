package build

import (
	"sync"
	"weak"

	"github.com/trawl-search/trawl/index/ngram"
	"github.com/trawl-search/trawl/index/postings"
	"github.com/trawl-search/trawl/index/words"
)

// workspace is memory that builders hand on: the postings of a large shard take
// hundreds of megabytes.
type workspace struct {
	extract *ngram.Extractor
	text    *postings.Builder
	words   *words.Builder
	pairs   pairs
	opaque  []uint32 // superblocks of the blob
}

// idle has the workspaces that no builder has. The collector may take them. A
// sync.Pool would not find one that was left on another processor, and the next
// shard would take as much memory once more.
var idle struct {
	sync.Mutex
	workspaces []weak.Pointer[workspace]
}

// takeWorkspace returns an idle workspace, or a new one.
func takeWorkspace() *workspace {
	idle.Lock()
	defer idle.Unlock()
	for n := len(idle.workspaces); n > 0; n = len(idle.workspaces) {
		w := idle.workspaces[n-1].Value()
		idle.workspaces = idle.workspaces[:n-1]
		if w != nil {
			return w
		}
	}
	return &workspace{extract: ngram.NewExtractor(), text: postings.NewBuilder(postings.Config{}), words: words.NewBuilder()}
}

// release makes the workspace idle.
func (w *workspace) release() {
	w.text.Reset()
	w.words.Reset()
	idle.Lock()
	idle.workspaces = append(idle.workspaces, weak.Make(w))
	idle.Unlock()
}
