// Command bench compares the system with its limits. It starts the processes that it needs in temporary folders, runs each
// measure and its raw limit or rival in alternating rounds (ours, theirs, ours, theirs), and prints the medians, their
// spread, and the ratio of the two with its goal. The venues that it measures are processes of the perpetua binary.
//
// Absolute figures depend on the machine and its other load. The ratio is computed for each round, and its median is the
// result, because both sides of a round ran on the same machine at about the same time. Requests are sent and sockets are
// read by a separate process (`bench child`, see child.go), the same for both sides.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// usageError is an error in the command line.
type usageError struct{ message string }

func (e *usageError) Error() string { return e.message }

// measure is a group of rows that share their processes.
type measure struct {
	name string
	what string
	run  func(ctx context.Context, b *bench) error
}

func measures() []measure {
	return []measure{
		{"rest", "orders over REST and their acknowledgement, beside a bare Echo and a synced produce", measureREST},
		{"live", "the same with everything live, beside a bare Echo and a handler on Postgres", measureLive},
		{"entry", "orders by batches and over sockets, beside single ones over REST and a handler on Postgres", measureEntry},
		{"forward", "processor time of the owner per order that another node received, beside one over REST at the owner", measureForward},
		{"journal", "commands into a journal, beside bare produces of the same bytes", measureJournal},
		{"responses", "responses of 20 answers, sealed, beside a handler on Postgres that stores them in clear", measureResponses},
		{"stops", "stops that fire and trade, beside limit orders that do", measureStops},
		{"holders", "an index price, and liquidations, where very many hold the instrument", measureHolders},
		{"instants", "orders while very many post funding and settlement, beside without", measureInstants},
		{"book", "operations on a book, beside a conventional book", measureBook},
		{"depth", "a million resting orders: acknowledgement, memory, start", measureDepth},
		{"fold", "records folded on one core, beside decoding alone, and from a log on all cores", measureFold},
		{"past", "whole states of very many accounts as of past records, at first and again", measurePast},
		{"projection", "rows projected, beside COPY of the same rows", measureProjection},
		{"reads", "a page of candles, beside an index scan of as many rows, and an account's state", measureReads},
		{"uploads", "files uploaded, beside a bare Echo that writes and hashes them, and the memory that they take", measureUploads},
		{"deliveries", "webhooks to 50 receivers, beside bare posts of the same bodies, and where one of them is dead", measureDeliveries},
		{"listings", "pages of triggers, questionnaires and deliveries among a million, beside among a thousand", measureListings},
		{"sockets", "messages to a thousand sockets, beside melody's own broadcast", measureSockets},
	}
}

// bench is one run of the command.
type bench struct {
	dir     string // of everything it starts
	binary  string // perpetua, which the venues run
	rounds  int
	round   time.Duration
	scale   int // number of resting orders in the deep book
	sockets int
	log     io.Writer
	rows    []Row
	failed  []failure
}

// run runs the chosen measures and prints their results.
func run(ctx context.Context, args []string, in io.Reader, out, log io.Writer) error {
	if len(args) > 1 && args[0] == "child" {
		return runChild(ctx, args[1], in, out)
	}
	if len(args) > 0 && args[0] == "log" {
		return writeLog(ctx, args[1:], log)
	}
	b := &bench{log: log}
	chosen, file, err := b.parse(args)
	if err != nil {
		return err
	}
	if b.dir, err = os.MkdirTemp("", "perpetua-bench-*"); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir)
	if err := os.Chmod(b.dir, 0o755); err != nil { // Postgres may run as another user
		return err
	}
	b.measure(ctx, chosen)
	if err := b.print(out, file); err != nil {
		return err
	}
	return b.verdict(len(chosen))
}

// failure is a measure that failed.
type failure struct {
	Measure string `json:"measure"`
	Error   string `json:"error"`
}

// measure runs the chosen measures one after the other. It records a failure and continues with the next measure,
// unless the context has ended.
func (b *bench) measure(ctx context.Context, chosen []measure) {
	for _, m := range chosen {
		start := time.Now()
		fmt.Fprintf(b.log, "%s: %s\n", m.name, m.what)
		err := ctx.Err()
		if err == nil {
			err = m.run(ctx, b)
		}
		if err != nil {
			b.failed = append(b.failed, failure{m.name, err.Error()})
			fmt.Fprintf(b.log, "  FAILED: %v\n", err)
		}
		fmt.Fprintf(b.log, "  took %.0f s\n", time.Since(start).Seconds())
	}
}

// verdict returns an error that lists the failed measures, or nil.
func (b *bench) verdict(chosen int) error {
	if len(b.failed) == 0 {
		return nil
	}
	var each []string
	for _, f := range b.failed {
		each = append(each, f.Measure+": "+f.Error)
	}
	return fmt.Errorf("%d of %d measures failed: %s", len(b.failed), chosen, strings.Join(each, "; "))
}

// parse parses the command line: the measures, their parameters, and the file for the results, "" for none.
func (b *bench) parse(args []string) (chosen []measure, file string, err error) {
	var only string
	var seconds float64
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	fs.SetOutput(b.log)
	fs.StringVar(&only, "only", "", "measures to run, separated by commas (default: all)")
	fs.StringVar(&file, "json", "", "file to write the results to as JSON")
	fs.StringVar(&b.binary, "perpetua", "bin/perpetua", "the `binary` whose venues are measured")
	fs.Float64Var(&seconds, "seconds", 2, "length of a round")
	fs.IntVar(&b.rounds, "rounds", 5, "rounds of each measure")
	fs.IntVar(&b.scale, "orders", 1_000_000, "resting orders of the deep book")
	fs.IntVar(&b.sockets, "sockets", 1000, "sockets that read")
	fs.Usage = func() {
		fmt.Fprintf(b.log, "Usage of bench, which measures (bench log -h: of bench log, which writes a long log):\n")
		fs.PrintDefaults()
		fmt.Fprintf(b.log, "The measures:\n")
		for _, m := range measures() {
			fmt.Fprintf(b.log, "  %-10s  %s\n", m.name, m.what)
		}
	}
	if err := fs.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil, "", err
	} else if err != nil {
		return nil, "", &usageError{err.Error()}
	}
	b.round = time.Duration(seconds * float64(time.Second))
	switch {
	case fs.NArg() > 0:
		return nil, "", &usageError{fmt.Sprintf("unexpected argument %q", fs.Arg(0))}
	case b.rounds < 1 || seconds <= 0 || b.scale < 1 || b.sockets < 1:
		return nil, "", &usageError{"--rounds, --seconds, --orders and --sockets must be above zero"}
	}
	chosen, err = choose(only)
	return chosen, file, err
}

// names lists the measures.
func names() (out []string) {
	for _, m := range measures() {
		out = append(out, m.name)
	}
	return out
}

// choose returns the measures in a list of names, or all if the list is empty.
func choose(list string) (chosen []measure, err error) {
	if list == "" {
		return measures(), nil
	}
	for name := range strings.SplitSeq(list, ",") {
		i := slices.Index(names(), strings.TrimSpace(name))
		if i < 0 {
			return nil, &usageError{fmt.Sprintf("there is no measure %q: %s are", name, strings.Join(names(), ", "))}
		}
		chosen = append(chosen, measures()[i])
	}
	return chosen, nil
}

// print writes the table, and the JSON file if its name is not empty.
func (b *bench) print(out io.Writer, file string) error {
	printTable(out, b.rows)
	for _, f := range b.failed {
		fmt.Fprintf(out, "%s FAILED: %s\n", f.Measure, f.Error)
	}
	if file == "" {
		return nil
	}
	content, err := json.MarshalIndent(struct {
		Machine machine   `json:"machine"`
		Rounds  int       `json:"rounds"`
		Seconds float64   `json:"seconds"`
		Rows    []Row     `json:"rows"`
		Failed  []failure `json:"failed,omitempty"`
	}{thisMachine(), b.rounds, b.round.Seconds(), b.rows, b.failed}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(content, '\n'), 0o644)
}

// add appends a row and prints it immediately, because a whole run takes minutes.
func (b *bench) add(r Row) {
	r.judge()
	b.rows = append(b.rows, r)
	fmt.Fprintf(b.log, "  %s\n", r.line())
}

// pair measures both sides in alternating rounds, after a warm-up round of each.
func (b *bench) pair(r Row, ours, baseline func() (float64, error)) error {
	for i := -1; i < b.rounds; i++ {
		x, err := ours()
		if err != nil {
			return err
		}
		y, err := baseline()
		if err != nil {
			return err
		}
		if i >= 0 {
			r.Ours.Rounds, r.Baseline.Rounds = append(r.Ours.Rounds, x), append(r.Baseline.Rounds, y)
		}
	}
	b.add(r)
	return nil
}
