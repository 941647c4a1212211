package peer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/trawl-search/trawl/bench/corpus"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// Indexed is a Trawl in which the repos of a corpus can be searched.
type Indexed struct {
	*Server
	// Conn is a connection to it.
	Conn *grpc.ClientConn
}

// IndexTrawl runs a Trawl with all data in a folder, has it index the repos, and waits until they can be searched. It calls indexed
// after each.
func IndexTrawl(ctx context.Context, program, dir string, c corpus.Corpus, indexed func(repo string)) (t *Indexed, err error) {
	s, err := Trawl(ctx, io.Discard, program, filepath.Join(dir, "trawl"))
	if err != nil {
		return nil, err
	}
	t = &Indexed{Server: s}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.Close())
		}
	}()
	if t.Conn, err = grpc.NewClient(s.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials())); err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", s.GRPC, err)
	}
	ingest := ingestv1.NewIngestServiceClient(t.Conn)
	for i, r := range c.Repos {
		git := filepath.Join(dir, strconv.Itoa(i)+".git")
		if err := r.Git(ctx, git); err != nil {
			return nil, err
		}
		if _, err := Publish(ctx, ingest, r.Name, git); err != nil {
			return nil, err
		}
		indexed(r.Name)
	}
	return t, s.AwaitRepos(ctx, len(c.Repos))
}

// Close ends the connection and the process.
func (t *Indexed) Close() error {
	var err error
	if t.Conn != nil {
		err = t.Conn.Close()
	}
	return errors.Join(err, t.Server.Close())
}
