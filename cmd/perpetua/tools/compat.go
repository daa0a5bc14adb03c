package tools

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/follow"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/snapshot"
	"github.com/perpetua-exchange/perpetua/streams/wholelog"
)

// compatible is the JSON output of a check of one journal.
type compatible struct {
	Journal    string       `json:"journal"`
	First      int64        `json:"first"`   // first record that was read: 0, or that of the base if there is no archive
	Records    int64        `json:"records"` // valid ones
	Unreadable []unreadable `json:"unreadable"`
	Folded     bool         `json:"folded"`   // the rules of this build apply all of them
	Error      string       `json:"error"`    // why not; "" if they do
	Snapshot   int64        `json:"snapshot"` // sequence of the snapshot that was prepared; -1 for none
}

// unreadable counts the records that this build can't decode because of one type of event.
type unreadable struct {
	Type    string `json:"type"`    // of the event, or of the command if the record has another error
	Version int    `json:"version"` // 0 for another error
	Records int64  `json:"records"`
	First   int64  `json:"first"` // sequence of the first one
	Reason  string `json:"reason"`
}

// CompatLog checks whether this build can read and apply every record of the journals, with those that only the archive holds. With
// --prepare it then stores its snapshot, so that a node of this build starts from that one.
func CompatLog(ctx context.Context, args []string, std settings.IO) error {
	var name string
	var prepare, asJSON bool
	s, err := settings.Parse("log compat", args, std, func(fs *flag.FlagSet) {
		fs.StringVar(&name, "journal", "", "journal (default: all)")
		fs.BoolVar(&prepare, "prepare", false, "store a snapshot of this build in the bucket, if it can read everything")
		settings.JSONFlag(fs, &asJSON)
	})
	if err != nil {
		return err
	}
	table, err := journals.All().Only(name)
	if err != nil {
		return err
	}
	client, stop, err := OpenLog(ctx, s)
	if err != nil {
		return err
	}
	defer stop()
	known := openAtHand(ctx, s)
	defer known.close()
	known.addBases(client)
	if prepare && known.saved == nil {
		return errors.Join(known.failed, errors.New("no bucket for the snapshot is at hand; --blob-url names it"))
	}
	all, wrong := []compatible{}, []string{}
	for _, j := range table {
		c, err := checkCompat(ctx, s, client, j, std)
		if err == nil && prepare && c.Folded {
			c.Snapshot, err = prepareSnapshot(ctx, client, known.saved.snapshots, j, std)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", j.Name(), err)
		}
		if all = append(all, c); !asJSON {
			c.print(std.Out)
		}
		if !c.Folded {
			wrong = append(wrong, c.Journal)
		}
	}
	if asJSON {
		err = std.PrintJSON(all)
	}
	if err == nil && len(wrong) > 0 {
		err = fmt.Errorf("this build can't read or apply every record of %s", strings.Join(wrong, ", "))
	}
	return err
}

// checkCompat reads a journal twice: once to count what this build can't decode, and then to fold it.
func checkCompat(ctx context.Context, s *settings.Settings, client *journal.Client, j journals.Journal, std settings.IO) (compatible, error) {
	c := compatible{Journal: j.Name(), Unreadable: []unreadable{}, Snapshot: -1}
	archives := newArchives(s)
	defer archives.close()
	log := wholelog.Log(client, archives.history(), j.Name(), "the log", func(lacking error) { fmt.Fprintf(std.Err, "perpetua: %s: %v\n", j.Name(), lacking) })
	b, err := log.Base(ctx)
	if err != nil {
		return c, err
	}
	chain := record.NewHeadChain(j.Name(), 0, record.Before)
	if b != nil {
		c.First = b.Sequence
		chain.StartAt(*b)
	}
	records, err := log.Records(ctx)
	if err != nil {
		return c, err
	}
	defer records.Close()
	progress := everySecond(j.Name()+", decoded", std.Progress())
	for {
		r, err := records.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return c, err
		}
		e, ok, err := chain.Admit(r.Offset, r.Value)
		if err != nil {
			return c, err
		}
		if ok {
			c.Records++
			c.count(e.Position.Sequence, r.Value, j.Rules.Registry())
			if progress != nil {
				progress(c.Records)
			}
		}
	}
	switch {
	case len(c.Unreadable) > 0:
		c.Error = "there are records that it can't read"
	case b != nil:
		c.Error = "the records before the base are not at hand, so it was not folded from its beginning"
	case c.Records > 0:
		if _, err := foldWhole(ctx, client, j, everySecond(j.Name()+", applied", std.Progress()), nil); record.Final(err) {
			c.Error = err.Error()
		} else if err != nil {
			return c, err
		}
	}
	c.Folded = c.Error == ""
	return c, nil
}

// count adds a record if this build can't decode it.
func (c *compatible) count(sequence int64, value []byte, registry *decide.Registry) {
	_, err := record.Decode(registry, value)
	if err == nil {
		return
	}
	u := unreadable{First: sequence, Reason: err.Error()}
	var unknown *decide.UnknownEventError
	if errors.As(err, &unknown) {
		u.Type, u.Version = unknown.Type, unknown.Version
	} else if head, err := record.DecodeHead(value); err == nil {
		u.Type = head.Command.Type
	}
	i := slices.IndexFunc(c.Unreadable, func(o unreadable) bool { return o.Type == u.Type && o.Version == u.Version })
	if i < 0 {
		i, c.Unreadable = len(c.Unreadable), append(c.Unreadable, u)
	}
	c.Unreadable[i].Records++
}

// foldWhole folds a journal from its genesis to its present end. progress is called after each record with the number of records, and
// begin with the fold before it runs. Both may be nil.
func foldWhole(ctx context.Context, client *journal.Client, j journals.Journal, progress func(int64), begin func(*follow.Fold)) (record.Position, error) {
	fold := follow.New(client, j.Rules, 0)
	if progress != nil {
		fold.Listen(func(e record.Entry, _ decide.State) { progress(e.Position.Sequence + 1) })
	}
	if begin != nil {
		begin(fold)
	}
	running, stop := context.WithCancel(ctx)
	var run sync.WaitGroup
	run.Go(func() { _ = fold.Run(running) }) // WaitTip returns the error of a fold that fails
	err := fold.WaitTip(ctx)
	stop()
	run.Wait()
	return fold.Position(), err
}

// prepareSnapshot folds a journal and stores the state. It returns the sequence of the snapshot that a node would now load.
func prepareSnapshot(ctx context.Context, client *journal.Client, store *snapshot.Store, j journals.Journal, std settings.IO) (int64, error) {
	if j.Codec == nil {
		return -1, nil
	}
	var maker *snapshot.Maker
	at, err := foldWhole(ctx, client, j, everySecond(j.Name()+", applied for the snapshot", std.Progress()), func(fold *follow.Fold) {
		maker = snapshot.NewMaker(snapshot.MakerConfig{Store: store, Client: client, Rules: j.Rules, Codec: j.Codec, Fold: fold, Node: "log compat",
			Records: 1, Interval: time.Minute})
	})
	if err != nil {
		return -1, err
	}
	if at.IsBefore() {
		return -1, nil
	}
	maker.Stop(ctx)
	seed, err := store.Load(ctx, j.Name(), 0, j.Codec)
	if err != nil {
		return -1, err
	}
	if seed == nil || seed.Position.Sequence < at.Sequence {
		return -1, fmt.Errorf("no snapshot of record %d was stored", at.Sequence)
	}
	return seed.Position.Sequence, nil
}

func (c compatible) print(out io.Writer) {
	fmt.Fprintf(out, "%s: %d records from record %d on", c.Journal, c.Records, c.First)
	switch {
	case c.Folded:
		fmt.Fprint(out, "; this build reads and applies all of them")
	default:
		fmt.Fprintf(out, "; this build does not apply all of them: %s", c.Error)
	}
	if c.Snapshot >= 0 {
		fmt.Fprintf(out, "; its snapshot of record %d is stored", c.Snapshot)
	}
	fmt.Fprintln(out)
	for _, u := range c.Unreadable {
		fmt.Fprintf(out, "  %d records from record %d on: %s version %d: %s\n", u.Records, u.First, u.Type, u.Version, u.Reason)
	}
}
