package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/cmd/trawl/internal/render"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

func newJobs(p Process) *cobra.Command {
	cmd := &cobra.Command{Use: "jobs", Short: "List and retry indexing jobs that were given up"}
	return withSubcommands(cmd, newJobsList(p), newJobsShow(p), newJobsRetry(p))
}

func newJobsList(p Process) *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List the jobs that were given up, the oldest first"}
	return listing(p, cmd, func(ctx context.Context, c client, asJSON bool) error {
		letters, err := deadLetters(ctx, c)
		if err != nil {
			return err
		}
		if asJSON {
			return printMessages(p.Out, "jobs", letters...)
		}
		return printLetters(p.Out, letters)
	})
}

func newJobsShow(p Process) *cobra.Command {
	cmd := &cobra.Command{Use: "show REPO", Short: "Show why the job of a repository was given up", Args: named(cobra.ExactArgs(1))}
	return calling(p, cmd, func(ctx context.Context, c client, args []string) error {
		resp, err := c.ingest.GetDeadLetter(ctx, &ingestv1.GetDeadLetterRequest{Name: args[0]})
		if err != nil {
			return err
		}
		l := resp.GetLetter()
		_, err = fmt.Fprintf(p.Out, "%s: request %d was given up %s ago, at %s, after %s:\n%s\n",
			render.Safe([]byte(l.GetName())), l.GetEpoch(), age(l), moment(l.GetGivenUpAt()), render.Count(uint64(l.GetAttempts()), "attempt", "attempts"),
			render.Safe([]byte(l.GetReason())))
		return err
	})
}

func newJobsRetry(p Process) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "retry {REPO... | --all}",
		Short: "Retry jobs that were given up",
		Args: named(func(_ *cobra.Command, args []string) error {
			if all == (len(args) > 0) {
				return errors.New("name the repositories, or pass --all for all of them")
			}
			return nil
		}),
	}
	cmd.Flags().BoolVar(&all, "all", false, "retry every job that was given up")
	return calling(p, cmd, func(ctx context.Context, c client, names []string) error {
		if all {
			letters, err := deadLetters(ctx, c)
			if err != nil {
				return err
			}
			for _, l := range letters {
				names = append(names, l.GetName())
			}
		}
		return retryAll(ctx, p, c, names)
	})
}

// retryAll says why a repo fails, and continues after it unless the router is what fails.
func retryAll(ctx context.Context, p Process, c client, names []string) (failed error) {
	for _, name := range names {
		resp, err := c.ingest.RetryDeadLetter(ctx, &ingestv1.RetryDeadLetterRequest{Name: name})
		out, line := p.Out, fmt.Sprintf("request %d is tried again", resp.GetEpoch())
		switch {
		case status.Code(err) == codes.Unavailable:
			return err
		case err != nil:
			out, line, failed = p.Err, "not tried again: "+explain(err), exitStatus{status: 1}
		}
		if _, err := fmt.Fprintf(out, "%s: %s\n", render.Safe([]byte(name)), line); err != nil {
			return err
		}
	}
	return failed
}

// deadLetters reads all pages.
func deadLetters(ctx context.Context, c client) (letters []*ingestv1.DeadLetter, err error) {
	for req := (&ingestv1.ListDeadLettersRequest{}); ; {
		page, err := c.ingest.ListDeadLetters(ctx, req)
		if err != nil {
			return nil, err
		}
		letters = append(letters, page.GetLetters()...)
		if req.After = page.GetNextAfter(); req.GetAfter() == 0 {
			return letters, nil
		}
	}
}

// age is how long ago a job was given up, to the second.
func age(l *ingestv1.DeadLetter) time.Duration {
	return time.Since(l.GetGivenUpAt().AsTime()).Round(time.Second)
}

// maxReasonShown bounds a reason in a list, in bytes; show has all of it.
const maxReasonShown = 100

func printLetters(out io.Writer, letters []*ingestv1.DeadLetter) error {
	return table(out, "jobs", func(w io.Writer) {
		fmt.Fprintln(w, "NAME\tREQUEST\tATTEMPTS\tAGE\tREASON")
		for _, l := range letters {
			reason, _, _ := strings.Cut(l.GetReason(), "\n")
			if len(reason) > maxReasonShown {
				reason = strings.ToValidUTF8(reason[:maxReasonShown], "") + "…"
			}
			fmt.Fprintf(w, "%s\t%d\t%d\t%s\t%s\n", render.Safe([]byte(l.GetName())), l.GetEpoch(), l.GetAttempts(), age(l), render.Safe([]byte(reason)))
		}
	})
}
