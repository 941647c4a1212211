package searchwire

import (
	"iter"

	"google.golang.org/protobuf/proto"

	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// pieceBytes is about the most that one message of a stream holds.
const pieceBytes = 1 << 20

// Pieces cuts files into runs for one message of a stream each: of at most
// 1 MiB, or of one file that is larger.
func Pieces(files []*searchv1.FileMatch) iter.Seq[[]*searchv1.FileMatch] {
	return func(yield func([]*searchv1.FileMatch) bool) {
		begin, size := 0, 0
		for i, f := range files {
			n := proto.Size(f)
			if i > begin && size+n > pieceBytes {
				if !yield(files[begin:i]) {
					return
				}
				begin, size = i, 0
			}
			size += n
		}
		if begin < len(files) {
			yield(files[begin:])
		}
	}
}
