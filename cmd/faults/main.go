// Command faults measures what one lost process costs a venue. It starts three
// Kafka brokers and the nodes of a venue as processes, places orders at its API
// nodes all the while, and injects one fault after the other: brokers and owners
// are killed, paused, or cut off from the network. After each fault it waits
// until all replicas are in sync again. In the end it holds every answer that a
// client got against the log.
//
// Without Java the brokers are containers. Then no fault drops packets.
//
// The seed decides which faults come, in which order, and how long each lasts.
//
// Exit code 0 means that nothing acknowledged was lost or doubled, that the read
// models equal the log, and that the venue accepted orders again after every
// fault, and during every fault of ten seconds or more: a venue must not wait
// for the lost process. 1 means that one of these failed, or with -strict that a goal for the
// gaps was missed. 2 is an error of usage or setup; 3 means that the
// program was skipped because there is neither Java nor Docker.
//
// Start reading at run.go.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// Exit codes.
const (
	exitGood    = 0
	exitBad     = 1
	exitSetup   = 2
	exitSkipped = 3
)

// options are the flags.
type options struct {
	binary   string
	faults   int
	seed     uint64
	duration time.Duration
	down     time.Duration
	rate     int
	clients  int
	kinds    []kind // to choose from; nil for all that this machine can do
	strict   bool
	plain    bool
	keep     bool
	json     string
}

// maxDown bounds a single fault.
const maxDown = time.Minute

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := command(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// command runs the program and returns its exit code.
func command(ctx context.Context, args []string, out, errs io.Writer) int {
	o, err := parse(args, errs)
	if errors.Is(err, flag.ErrHelp) {
		return exitGood
	}
	if err != nil {
		fmt.Fprintln(errs, "faults:", err)
		return exitSetup
	}
	code, err := inNetwork(ctx, o, args, out, errs)
	if err != nil {
		fmt.Fprintln(errs, "faults:", err)
	}
	return code
}

// parse reads the flags.
func parse(args []string, errs io.Writer) (options, error) {
	var o options
	var kinds string
	fs := flag.NewFlagSet("faults", flag.ContinueOnError)
	fs.SetOutput(errs)
	fs.StringVar(&o.binary, "perpetua", "bin/perpetua", "the `binary` whose nodes are tested")
	fs.IntVar(&o.faults, "faults", 20, "number of faults")
	fs.Uint64Var(&o.seed, "seed", 1, "seed of the plan")
	fs.DurationVar(&o.duration, "duration", 0, "begin no fault after this time; 0 for no limit")
	fs.DurationVar(&o.down, "down", 20*time.Second, "longest time that a fault lasts; the shortest is half of it")
	fs.IntVar(&o.rate, "rate", 25, "orders per second")
	fs.IntVar(&o.clients, "clients", 8, "clients, each with a customer of its own")
	fs.StringVar(&kinds, "kinds", "", "only these kinds of faults, like \"kill leader,pause owner\"")
	fs.BoolVar(&o.strict, "strict", false, "fail if a goal is missed")
	fs.BoolVar(&o.plain, "plain", false, "use loopback even where network namespaces are available; no fault drops packets then")
	fs.BoolVar(&o.keep, "keep", false, "keep the folder with the nodes' logs and data")
	fs.StringVar(&o.json, "json", "", "write the result of each fault to this `file`")
	if err := fs.Parse(args); err != nil {
		return options{}, err
	}
	if fs.NArg() > 0 {
		return options{}, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	if err := o.check(); err != nil {
		return options{}, err
	}
	var err error
	o.kinds, err = parseKinds(kinds)
	return o, err
}

// check returns an error if a number or time is out of bounds.
func (o options) check() error {
	for _, bound := range []struct {
		name         string
		value, limit int
	}{{"faults", o.faults, 10_000}, {"rate", o.rate, 500}, {"clients", o.clients, 100}} {
		if bound.value < 1 || bound.value > bound.limit {
			return fmt.Errorf("-%s takes 1 to %d, not %d", bound.name, bound.limit, bound.value)
		}
	}
	if o.down < time.Second || o.down > maxDown {
		return fmt.Errorf("-down takes 1s to %v, not %v", maxDown, o.down)
	}
	if o.duration < 0 {
		return errors.New("-duration is negative")
	}
	return nil
}
