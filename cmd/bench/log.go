package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/transfer"
)

// logRequest holds the arguments of `bench log`.
type logRequest struct {
	to      string
	on      journal.Config // the brokers to append to; none for a file
	records int64
	gap     time.Duration // between two records, on average
	age     time.Duration // of the last record
	seed    uint64
}

func parseLog(args []string, log io.Writer) (l logRequest, err error) {
	fs := flag.NewFlagSet("bench log", flag.ContinueOnError)
	fs.SetOutput(log)
	fs.StringVar(&l.to, "to", "", "`file` to write, which perpetua log copy reads (.zst compresses it), or brokers (host:port,…) whose topic trading is empty")
	fs.StringVar(&l.on.Prefix, "topic-prefix", "", "prefix of the topic's name on brokers")
	compression := fs.String("compression", "", "of the batches on brokers: none, gzip, snappy, lz4, zstd")
	fs.Int64Var(&l.records, "records", 1_000_000, "number of records")
	fs.DurationVar(&l.gap, "gap", 240*time.Millisecond, "time between two records, on average")
	fs.DurationVar(&l.age, "age", 50*time.Hour, "age of the last record")
	fs.Uint64Var(&l.seed, "seed", 1, "seed of the random choices")
	if err := fs.Parse(args); errors.Is(err, flag.ErrHelp) {
		return l, err
	} else if err != nil {
		return l, &usageError{err.Error()}
	}
	switch {
	case fs.NArg() > 0:
		return l, &usageError{fmt.Sprintf("unexpected argument %q", fs.Arg(0))}
	case l.to == "":
		return l, &usageError{"--to is needed"}
	case l.records < 1 || l.gap < time.Microsecond || l.age < 0:
		return l, &usageError{"--records, --gap and --age must be above zero"}
	}
	l.on.Brokers = transfer.Brokers(l.to)
	if l.on.Brokers == nil && *compression+l.on.Prefix != "" {
		return l, &usageError{"--topic-prefix and --compression need brokers"}
	}
	if l.on.Compression, err = journal.ParseCompression(*compression); err != nil {
		return l, &usageError{"--compression: " + err.Error()}
	}
	return l, nil
}

// writeLog writes a trading journal of random orders, which the rules have decided, to a file or to an empty topic. It runs no
// venue, so that a log of ten million records takes minutes. `perpetua log copy` makes a venue's log of a file.
func writeLog(ctx context.Context, args []string, log io.Writer) error {
	l, err := parseLog(args, log)
	if err != nil {
		return err
	}
	to, release, err := l.open(ctx)
	if err != nil {
		return err
	}
	defer release()
	start := time.Now()
	w := &logWriter{ctx: ctx, to: to, records: l.records, log: log, start: start}
	end := start.Add(-l.age)
	m := newMarketplace(l.seed, scalar.TimeOf(end.Add(-time.Duration(l.records)*l.gap)), scalar.TimeOf(end), w.left, w.write)
	err = m.trade(func() bool { return w.written < l.records })
	if err := errors.Join(err, to.Close(ctx)); err != nil {
		return err
	}
	if l.on.Brokers == nil {
		if err := transfer.Finish(l.to); err != nil {
			return err
		}
	}
	w.report()
	return nil
}

// open opens the file, or the topic. close ends what the appender uses.
func (l *logRequest) open(ctx context.Context) (to transfer.Appender, close func(), err error) {
	if l.on.Brokers == nil {
		to, err = transfer.Target(l.to, "trading").Append(ctx, nil)
		return to, func() {}, err
	}
	client, err := journal.NewClient(l.on)
	if err != nil {
		return nil, nil, err
	}
	if err = client.EnsureTopics(ctx, "trading"); err == nil {
		to, err = transfer.AppendAt(client, "trading", "brokers "+l.to, 0)
	}
	if err != nil {
		client.Close()
		return nil, nil, err
	}
	return to, client.Close, nil
}

// logWriter appends entries.
type logWriter struct {
	ctx     context.Context
	to      transfer.Appender
	written int64
	bytes   int64 // the total size of the values
	records int64
	log     io.Writer
	start   time.Time
}

// reportEvery is the number of records between two lines of progress.
const reportEvery = 1_000_000

func (w *logWriter) write(e record.Entry) error {
	if w.written++; w.written%reportEvery == 0 && w.written < w.records {
		w.report()
	}
	w.bytes += int64(len(e.Value))
	r := journal.KafkaRecord("trading", "trading", 0, e.Journal, e.Record, e.Value)
	r.Offset = e.Position.Sequence
	return w.to.Append(w.ctx, r)
}

// left returns the number of entries that are still to be written.
func (w *logWriter) left() int64 { return w.records - w.written }

func (w *logWriter) report() {
	fmt.Fprintf(w.log, "%d of %d records, %d bytes of values, %.0f s\n", w.written, w.records, w.bytes, time.Since(w.start).Seconds())
}
