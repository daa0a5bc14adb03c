// Command maker is a market maker as a stranger would write it: on a client generated from the OpenAPI file, a WebSocket
// library, and what the two descriptions say. It makes itself an API key for one account, quotes both sides of two
// instruments over the socket, loses its connection now and then and goes on where it was. All the while it holds its own
// idea of its orders, fills, positions and balance against what the venue says of them, and ends with exit code 1 at the
// first difference.
//
// It knows the venue by the run.json that perpetua writes: MAKER_RUN_FILE names it. MAKER_USERNAME and MAKER_CUSTOMER say
// for whom it trades, MAKER_FOR for how long, and MAKER_SEED what it draws its random numbers from. At the end it prints
// what it did as JSON.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"time"
)

func main() {
	m, err := run(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, "maker:", err)
		os.Exit(1)
	}
	_ = json.NewEncoder(os.Stdout).Encode(m.did)
}

func run(ctx context.Context) (*maker, error) {
	lasts, err := time.ParseDuration(os.Getenv("MAKER_FOR"))
	if err != nil {
		return nil, err
	}
	seed, err := strconv.ParseUint(os.Getenv("MAKER_SEED"), 10, 64)
	if err != nil {
		return nil, err
	}
	v := &venue{runFile: os.Getenv("MAKER_RUN_FILE"), customer: os.Getenv("MAKER_CUSTOMER")}
	if err := v.makeKey(ctx, os.Getenv("MAKER_USERNAME")); err != nil {
		return nil, fmt.Errorf("making an API key: %w", err)
	}
	m, err := newMaker(ctx, v, seed)
	if err != nil {
		return nil, err
	}
	return m, m.trade(ctx, time.Now().Add(lasts))
}
