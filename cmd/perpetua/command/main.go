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

// Main runs the command that args name, without the name of the program, until it ends or the process receives a signal to stop.
// It returns the exit code.
func Main(args []string, std settings.IO) int {
	ctx, stop := signal.NotifyContext(context.Background(), stopSignals()...)
	defer stop()
	pacing, end := context.WithCancel(context.WithoutCancel(ctx)) // also while a node shuts down
	var paced sync.WaitGroup
	paced.Go(func() { collector.Pace(pacing) })
	defer paced.Wait()
	defer end()
	return dispatch(ctx, args, std)
}

// stopSignals returns the signals that stop the process. A terminal that is closed sends SIGHUP. nohup makes processes ignore it, and
// then it stays ignored.
func stopSignals() []os.Signal {
	stops := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		stops = append(stops, syscall.SIGHUP)
	}
	return stops
}
