package main

import (
	"context"
	"errors"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/bench"
)

// benchCommand measures the system beside what bounds it.
func benchCommand(ctx context.Context, args []string, std stdio) error {
	err := bench.Command(ctx, args, std.in, std.out, std.err)
	var wrong *bench.UsageError
	if errors.As(err, &wrong) {
		return usagef("%v", wrong)
	}
	return err
}
