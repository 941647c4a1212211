// Command trawl is Trawl: every service, and the tools to use them. See trawl --help.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/trawl-search/trawl/cmd/trawl/internal/cli"
	_ "github.com/trawl-search/trawl/cmd/trawl/internal/garbage" // it makes the roles collect less often
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := cli.Run(ctx, os.Args[1:], cli.Process{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Environ: os.Environ()})
	stop()
	os.Exit(status)
}
