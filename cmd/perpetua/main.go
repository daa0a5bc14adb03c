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

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := dispatch(ctx, os.Args[1:], settings.StandardIO())
	stop()
	os.Exit(code)
}
