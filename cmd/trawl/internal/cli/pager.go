package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// pageable is the input of a pager whose output is a terminal.
type pageable struct{ io.Writer }

// paged runs a command that may print more than a screen. On a terminal its output goes through the pager of the user, which is
// $TRAWL_PAGER, $PAGER or less.
func (p Process) paged(ctx context.Context, command func(Process) error) error {
	pager := p.pager()
	if !isTerminal(p.Out) || pager == "" {
		return command(p)
	}
	return p.through(ctx, pager, command)
}

// pager is the user's pager as a line for the shell, "" for none.
func (p Process) pager() string {
	pager := "less"
	for _, name := range []string{"PAGER", "TRAWL_PAGER"} {
		for _, line := range p.Environ {
			if value, ok := strings.CutPrefix(line, name+"="); ok {
				pager = strings.TrimSpace(value)
			}
		}
	}
	if pager == "cat" || p.env("TERM") == "dumb" {
		return ""
	}
	if _, err := exec.LookPath("less"); pager == "less" && err != nil {
		return ""
	}
	return pager
}

// through runs a command whose output is the input of a pager, and waits for both. Leaving the pager before the command is done is no
// error.
func (p Process) through(ctx context.Context, pager string, command func(Process) error) error {
	cmd := exec.CommandContext(ctx, "sh", "-c", pager)
	cmd.Cancel = func() error { return nil } // it leaves the terminal as it was once its input ends
	cmd.Stdout, cmd.Stderr, cmd.Env = p.Out, p.Err, p.Environ
	if p.env("LESS") == "" { // as in git: one screen is not paged, colours are shown, and the text stays
		cmd.Env = append(cmd.Environ(), "LESS=FRX")
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("starting the pager %q: %w", pager, err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting the pager %q: %w", pager, err)
	}
	shown := p
	shown.Out = pageable{in}
	failed := command(shown)
	if err := in.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		failed = errors.Join(failed, fmt.Errorf("closing the input of the pager: %w", err))
	}
	if err := cmd.Wait(); err != nil && failed == nil && ctx.Err() == nil {
		return fmt.Errorf("the pager %q, from $TRAWL_PAGER or $PAGER, failed: %w", pager, err)
	}
	if errors.Is(failed, syscall.EPIPE) {
		return nil
	}
	return failed
}
