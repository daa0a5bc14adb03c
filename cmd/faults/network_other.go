//go:build !linux

package main

import (
	"context"
	"fmt"
	"io"
)

// inNetwork runs the program on loopback. Only Linux has network namespaces.
func inNetwork(ctx context.Context, o options, _ []string, out, errs io.Writer) (int, error) {
	fmt.Fprintln(out, "faults that drop packets are left out: there are no network namespaces here")
	return run(ctx, o, nil, out, errs)
}
