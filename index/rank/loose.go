package rank

import (
	_ "embed"
	"math"
	"strings"
	"sync"
)

// LooseWord is a text of a loose query. A document needs at least one of them, and rarer ones count more.
type LooseWord struct {
	Text string
	// Weight is what its matches count for: 1 for rare words, less for words that are common in code.
	Weight float64
}

// NewLooseWord weighs a text by the table of common words. The weight does not depend on what is searched, so that scores of different
// shards can be compared.
func NewLooseWord(text string) *LooseWord {
	weight, common := commonWords()[strings.ToLower(text)]
	if !common {
		weight = 1
	}
	return &LooseWord{text, weight}
}

// Weigh returns a part of a score times the weight, rounded down. A term that is not loose (nil) counts in full.
func (w *LooseWord) Weigh(score float64) float64 {
	if w == nil {
		return score
	}
	return math.Floor(score * w.Weight)
}

// common has the words that are in at least one in a hundred files of a sample: 3,000 files each from the source trees of Go 1.26, GCC 12,
// OpenJDK 17 and Rust 1.63, with equal weight. Its three lines are the words in a fifth of the files or more, in a twentieth, and in a
// hundredth.
//
//go:embed common.txt
var common string

// commonWeights are the weights for the lines of common: about the logarithms of how rare the words are, relative to a word in one of 3,000
// files.
var commonWeights = [...]float64{.2, .4, .6}

var commonWords = sync.OnceValue(func() map[string]float64 {
	weights := map[string]float64{}
	for i, line := range strings.Split(strings.TrimSpace(common), "\n") {
		for word := range strings.FieldsSeq(line) {
			weights[word] = commonWeights[i]
		}
	}
	return weights
})
