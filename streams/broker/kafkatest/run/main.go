// Command run runs a command with a real Apache Kafka and passes the broker addresses in KAFKA_BROKERS:
//
//	go run ./streams/broker/kafkatest/run -- go test ./...
//
// It exits with the code of the command, or with 1 and a list of what is missing if it cannot start Kafka. Without a
// command it prints the addresses and waits for Ctrl-C.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"

	"github.com/perpetua-exchange/perpetua/streams/broker/kafkatest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

func run(ctx context.Context, arguments []string) int {
	if len(arguments) > 0 && arguments[0] == "--" {
		arguments = arguments[1:]
	}
	kafka, err := kafkatest.Start(ctx, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	brokers := strings.Join(kafka.Brokers(), ",")
	fmt.Fprintf(os.Stderr, "kafkatest: %s, %s=%s\n", kafka.Origin, kafkatest.Variable, brokers)
	code := 0
	if len(arguments) == 0 {
		fmt.Println(brokers)
		<-ctx.Done()
	} else if err := execute(ctx, arguments, brokers); err != nil {
		code = 1
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() > 0 {
			code = exit.ExitCode()
		} else {
			fmt.Fprintln(os.Stderr, "kafkatest:", err)
		}
	}
	if err := kafka.Close(); err != nil {
		fmt.Fprintln(os.Stderr, "kafkatest: stop Kafka:", err)
		return max(code, 1)
	}
	return code
}

// execute runs the command. When a signal ends ctx, it passes SIGTERM on to the command and waits for it, so that Kafka
// outlives it.
func execute(ctx context.Context, arguments []string, brokers string) error {
	command := exec.CommandContext(ctx, arguments[0], arguments[1:]...)
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.Env = append(os.Environ(), kafkatest.Variable+"="+brokers)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	return command.Run()
}
