package shard

import "context"

// InPieces returns options by which that many helpers search the shard in
// small pieces, however little there is to do.
func InPieces(o Options, helpers int) Options {
	o.pieces = helpers
	return o
}

// Help searches the whole shard as a helper does.
func (s *Shard) Help(ctx context.Context, q *Query) error {
	run := s.begin(ctx, Options{MaxFiles: 1})
	defer run.release()
	_ = run.repos.reset(s.docs, &run.opts)
	run.crew = &crew{bounds: []uint32{0, s.content.Blobs()}}
	return run.help(q)
}
