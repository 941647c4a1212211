package searchapi

import (
	"strconv"
	"time"

	"google.golang.org/grpc/metadata"
)

// The keys of a Cost in metadata.
const (
	processorKey = "trawl-processor-ns"
	decodedKey   = "trawl-bytes-decoded"
)

// Cost is what a call cost a searcher. It is in the trailer of the call, so that calls
// that fail have one too.
type Cost struct {
	// Processor is how long the call had a processor, over all shards.
	Processor time.Duration
	// Decoded is the content that was decompressed, in bytes.
	Decoded uint64
}

// Trailer is the cost as metadata.
func (c Cost) Trailer() metadata.MD {
	return metadata.Pairs(processorKey, strconv.FormatInt(c.Processor.Nanoseconds(), 10), decodedKey, strconv.FormatUint(c.Decoded, 10))
}

// CostOf is the cost in a trailer. It reports false if there is none, or no valid one.
func CostOf(trailer metadata.MD) (Cost, bool) {
	processor, decoded := trailer.Get(processorKey), trailer.Get(decodedKey)
	if len(processor) != 1 || len(decoded) != 1 {
		return Cost{}, false
	}
	ns, badTime := strconv.ParseInt(processor[0], 10, 64)
	bytes, badBytes := strconv.ParseUint(decoded[0], 10, 63)
	return Cost{Processor: time.Duration(ns), Decoded: bytes}, badTime == nil && badBytes == nil && ns >= 0
}
