// Command perpetua is the whole system in one binary: the venue and the onboarding service on a Kafka log, with
// everything embedded (`perpetua run`) or against a cluster (`perpetua serve`), and the tools that read the log.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
)

func main() { os.Exit(command(settings.StandardIO())) }

// command runs the command in the arguments of the process until it ends or a signal stops it, and returns its exit
// code.
func command(std settings.IO) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return dispatch(ctx, os.Args[1:], std)
}
