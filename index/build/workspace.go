package build

import (
	"sync"
	"weak"

	"github.com/trawl-search/trawl/index/inverted"
	"github.com/trawl-search/trawl/index/ngram"
)

// workspace is memory that one builder passes on to the next: the postings of a large shard take
// hundreds of megabytes.
type workspace struct {
	extract *ngram.Extractor
	text    *inverted.NgramBuilder // of contents, then of names
	words   *inverted.WordBuilder
	lexicon *inverted.NgramBuilder
	batches [2]batch
}

// addNgrams collects the n-grams of a content by its superblocks. It processes one superblock at a
// time, since a content may be large.
func (w *workspace) addNgrams(c batchContent, text []byte, opaque []uint32) (err error) {
	w.extract.ExtractBetween(text, opaque, w.text.Adder(c.first, &err))
	return err
}

// addWords collects the words of a content, and which of them it defines.
func (w *workspace) addWords(c batchContent, text []byte, opaque []uint32) error {
	return w.words.Add(c.first, text, opaque, c.language)
}

// memory returns about how many bytes the collected words and postings take.
func (w *workspace) memory() int64 { return int64(w.text.Postings())*postingSize + w.words.Memory() }

// postingSize is the bytes that a posting of an n-gram takes until it is written.
const postingSize = 4

// addNames collects all n-grams of the names.
func (w *workspace) addNames(names []byte) (err error) {
	w.extract.Extract(names, w.text.Adder(0, &err))
	return err
}

// idle has the workspaces that no builder uses. The collector of garbage may free them. A sync.Pool
// would not find one that was left on another processor, and the next shard would allocate as much
// again.
var idle struct {
	sync.Mutex
	workspaces   []weak.Pointer[workspace]
	made, reused uint64
}

// Workspaces counts the builders of this process so far: made had to allocate the memory in which
// builders collect words and postings, reused had that of an earlier one.
func Workspaces() (made, reused uint64) {
	idle.Lock()
	defer idle.Unlock()
	return idle.made, idle.reused
}

// takeWorkspace returns an idle workspace, or a new one.
func takeWorkspace() *workspace {
	idle.Lock()
	defer idle.Unlock()
	for n := len(idle.workspaces); n > 0; n = len(idle.workspaces) {
		w := idle.workspaces[n-1].Value()
		idle.workspaces = idle.workspaces[:n-1]
		if w != nil {
			idle.reused++
			return w
		}
	}
	idle.made++
	return &workspace{
		extract: ngram.NewExtractor(),
		text:    inverted.NewNgramBuilder(),
		words:   inverted.NewWordBuilder(),
		lexicon: inverted.NewNgramBuilder(),
	}
}

// release makes the workspace idle.
func (w *workspace) release() {
	w.text.Reset()
	w.words.Reset()
	w.lexicon.Reset()
	for i := range w.batches {
		w.batches[i].reset()
	}
	idle.Lock()
	idle.workspaces = append(idle.workspaces, weak.Make(w))
	idle.Unlock()
}
