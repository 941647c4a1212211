package search

import (
	"slices"

	"github.com/trawl-search/trawl/index/rank"
)

// missingWords returns the words of a match:any that a document lacks, up to
// MaxMissingWords.
func (s *search) missingWords(h *hit) (missing []string) {
	for _, word := range s.opts.loose {
		if len(missing) < MaxMissingWords && !slices.ContainsFunc(h.features.Terms, func(t rank.Term) bool { return t.Loose == word }) {
			missing = append(missing, word.Text)
		}
	}
	return missing
}
