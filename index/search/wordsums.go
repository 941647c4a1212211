package search

import "github.com/trawl-search/trawl/index/rank"

// wordSums counts matches by their quality, as rank.Counts does, in one number, so that one
// addition adds them all: the words that start in one superblock have at most 4,159 matches.
type wordSums uint64

const sumBits = 21

// oneOf returns one match of a quality.
func oneOf(quality rank.Quality) wordSums {
	one := wordSums(1)
	if quality >= rank.Partial {
		one |= 1 << sumBits
	}
	if quality >= rank.Word {
		one |= 1 << (2 * sumBits)
	}
	return one
}

func (s wordSums) counts() rank.Counts {
	const mask = 1<<sumBits - 1
	return rank.Counts{rank.Inside: uint32(s & mask), rank.Partial: uint32(s >> sumBits & mask), rank.Word: uint32(s >> (2 * sumBits) & mask)}
}

func (s wordSums) all() int { return int(s & (1<<sumBits - 1)) }
