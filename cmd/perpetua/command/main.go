// Package command is the command line of perpetua: the table of its commands, their help, the completion of shells, and the
// exit codes. What a command does is in the packages beside it.
package command

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
)

// Main runs the command that args name, without the name of the program, until it ends or the process receives SIGINT or
// SIGTERM. It returns the exit code.
func Main(args []string, std settings.IO) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return dispatch(ctx, args, std)
}
