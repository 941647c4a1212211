package fanout

import (
	"math"
	"sync"
	"time"
)

// Bounds of the histogram's buckets. Each is latencyGrowth times the previous one, so
// that a quantile is right to a quarter.
const (
	latencyLeast   = 500 * time.Microsecond
	latencyGrowth  = 1.25
	latencyBuckets = 53 // the last starts at about a minute
	// latencyMemory is the number of samples at which all counts are halved, so that
	// the histogram covers the last few hundred.
	latencyMemory = 512
	// latencyEnough is the least number of samples for a quantile.
	latencyEnough = 20
)

// latency is a histogram of the latency of a searcher's replies, in which old samples
// fade. It is safe for concurrent use.
type latency struct {
	mu     sync.Mutex
	counts [latencyBuckets]uint32
	total  uint32
}

func (l *latency) observe(took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts[bucketOf(took)]++
	if l.total++; l.total < latencyMemory {
		return
	}
	l.total = 0
	for i := range l.counts {
		l.counts[i] /= 2
		l.total += l.counts[i]
	}
}

// high is an upper bound of the time in which the share hedgeQuantile of the replies came. It
// is false if there are too few samples.
func (l *latency) high() (time.Duration, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.total < latencyEnough {
		return 0, false
	}
	rest := uint32(math.Ceil(hedgeQuantile * float64(l.total)))
	for i, n := range l.counts {
		if n >= rest {
			return upperBound(i), true
		}
		rest -= n
	}
	return upperBound(latencyBuckets - 1), true
}

func bucketOf(took time.Duration) int {
	if took <= latencyLeast {
		return 0
	}
	steps := math.Log(float64(took)/float64(latencyLeast)) / math.Log(latencyGrowth)
	return min(int(math.Ceil(steps)), latencyBuckets-1)
}

func upperBound(bucket int) time.Duration {
	return time.Duration(float64(latencyLeast) * math.Pow(latencyGrowth, float64(bucket)))
}
