// Package command implements the command line of perpetua: the table of commands, help, shell completion, and exit codes.
// Other packages under cmd/perpetua implement the commands.
package command

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/collector"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
)

// Main runs the command that args name, without the name of the program, until it ends or the process receives SIGINT or
// SIGTERM. It returns the exit code.
func Main(args []string, std settings.IO) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	pacing, end := context.WithCancel(context.WithoutCancel(ctx)) // also while a node shuts down
	var paced sync.WaitGroup
	paced.Go(func() { collector.Pace(pacing) })
	defer paced.Wait()
	defer end()
	return dispatch(ctx, args, std)
}
