package cli

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

func TestDelete(t *testing.T) {
	s := &scripted{}
	if exit, _, errs := trawl(t, s, "delete", "example.org/r"); exit != 0 || s.deleted != "example.org/r" {
		t.Errorf("exit %d, deleted %q: %s", exit, s.deleted, errs)
	}
	if exit, _, errs := trawl(t, s, "repos", "reindex", "xx"); exit != 1 || !strings.Contains(errs, `"pond"`) {
		t.Errorf("reindex: exit %d, without the nearest name: %s", exit, errs)
	}
	if exit, _, errs := trawl(t, s, "delete", "xx"); exit != 1 || !strings.Contains(errs, `"pond"`) {
		t.Errorf("exit %d, without the nearest name: %s", exit, errs)
	}
}

// lingering is a router whose bucket keeps the bytes of a deleted repo until it is asked for the second time.
type lingering struct {
	scripted
	asked    int
	whenLeft func()
}

func (l *lingering) GetDeletion(context.Context, *ingestv1.GetDeletionRequest) (*ingestv1.GetDeletionResponse, error) {
	l.asked++
	gone := l.asked > 1
	if !gone && l.whenLeft != nil {
		l.whenLeft()
	}
	return &ingestv1.GetDeletionResponse{Gone: gone, Places: []*ingestv1.DeletionPlace{
		{Kind: ingestv1.PlaceKind_PLACE_KIND_BUCKET, Gone: gone, Within: durationpb.New(time.Hour)},
		{Kind: ingestv1.PlaceKind_PLACE_KIND_SEARCHER, Name: "s0", Gone: true},
	}}, nil
}

// TestDeleteNamesWhatIsLeft: the wait names the places that are left, and invents no rate at which they become fewer.
func TestDeleteNamesWhatIsLeft(t *testing.T) {
	exit, out, errs := serveAndRun(t, func(srv *grpc.Server) { ingestv1.RegisterIngestServiceServer(srv, &lingering{}) }, "delete", "--wait", "pond")
	if exit != 0 || !strings.Contains(out, "pond: gone from the bucket") || errs != "pond: left in the bucket (within 1h0m0s)\n" {
		t.Errorf("exit %d, printed %q and %q", exit, out, errs)
	}
}

// TestDeleteIsInterrupted: an interrupted wait says what becomes of the bytes, and what ended it.
func TestDeleteIsInterrupted(t *testing.T) {
	ctx, interrupt := context.WithCancelCause(t.Context())
	defer interrupt(nil)
	router := &lingering{whenLeft: func() { interrupt(errors.New("interrupt signal received")) }}
	addr := serve(t, func(srv *grpc.Server) { ingestv1.RegisterIngestServiceServer(srv, router) })
	var out, errs bytes.Buffer
	exit := Run(ctx, []string{"delete", "--wait", "--addr", addr, "pond"}, Process{Out: &out, Err: &errs})
	want := "pond: its bytes go without this command; trawl delete --wait pond waits again\ntrawl: interrupt signal received\n"
	if exit != 1 || !strings.HasSuffix(errs.String(), want) {
		t.Errorf("exit %d: %s", exit, errs.String())
	}
}
