package tools

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/local"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/streams/archive"
	"github.com/perpetua-exchange/perpetua/streams/base"
	"github.com/perpetua-exchange/perpetua/streams/broker"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/transfer"
	"github.com/perpetua-exchange/perpetua/streams/wholelog"
)

// copyRequest holds the arguments of a copy.
type copyRequest struct {
	*settings.Settings
	from, to, prefix string // prefix of the topic names at the target
	journals         journals.Table
	json             bool
	move             bool // the venue continues at the target
	interrupted      bool // leave out the incomplete end of a source file
	join             bool // begin with the archive
}

// copied is the JSON output of a copy for one journal.
type copied struct {
	Journal  string `json:"journal"`
	Records  int64  `json:"records"`
	Found    int64  `json:"found"`   // records that the target already had
	Skipped  int64  `json:"skipped"` // records that readers skip as invalid
	After    int64  `json:"after"`   // invalid records after the last valid one
	Sequence int64  `json:"sequence"`
	Hash     string `json:"hash"`
	// Restored is the number of records that had a timestamp of a broker.
	Restored int64 `json:"restored,omitzero"`
	// Moved is the end offset of the source if it has grown during the copy.
	Moved int64 `json:"moved_on_to,omitzero"`
}

func parseCopy(args []string, std settings.IO) (c copyRequest, err error) {
	var name string
	c.Settings, err = settings.Parse("log copy", args, std, func(fs *flag.FlagSet) {
		fs.StringVar(&c.from, "from", "", "data folder, brokers (host:port,…), or file to copy from")
		fs.StringVar(&c.to, "to", "", "data folder, brokers, or file to copy to; a name with an extension is a file, which .zst compresses")
		fs.StringVar(&c.prefix, "to-prefix", "", "prefix of topic names at the target (default: --topic-prefix, which is that of the source)")
		fs.StringVar(&name, "journal", "", "journal to copy (default: all)")
		settings.JSONFlag(fs, &c.json)
		fs.BoolVar(&c.interrupted, "interrupted", false, "leave out the incomplete end of a --from file that an interrupted copy has left")
		fs.BoolVar(&c.join, "join", false, "begin with the records of the archive that --archive-url or --blob-url names, for a source that has lost its beginning")
		fs.BoolVar(&c.move, "move", false, "make the target the venue's log, so that the venue starts there and no longer at the source; needs the key store")
	})
	if err != nil {
		return c, err
	}
	switch {
	case c.from == "" || c.to == "":
		return c, settings.Usagef("--from and --to are needed")
	case same(c.from, c.to):
		return c, settings.Usagef("--from and --to are the same")
	case c.interrupted && kindOf(c.from) != inFile:
		return c, settings.Usagef("--interrupted takes a --from that is a file")
	case c.join && (c.move || kindOf(c.from) == inFile):
		return c, settings.Usagef("--join takes a --from that is brokers or a data folder, and not --move")
	case c.move && name != "":
		return c, settings.Usagef("--move takes the whole venue, and not --journal")
	case c.move && (kindOf(c.from) == inFile || kindOf(c.to) == inFile):
		return c, settings.Usagef("--move takes data folders and brokers: a venue does not run on a file")
	case c.move && kindOf(c.from) == onBrokers && c.Stores.KeyURL == "" && c.Source("data") == "default":
		return c, settings.Usagef("--move changes the fence in the key store: name that with --key-url")
	}
	if c.move && kindOf(c.from) == inFolder && c.Source("data") == "default" {
		c.Data = c.from // where the keys are unless --key-url names another store
	}
	c.prefix, c.journals = cmp.Or(c.prefix, c.Kafka.Prefix), journals.All()
	if name != "" {
		j, err := c.journals.Of(name)
		if err != nil {
			return c, err
		}
		c.journals = journals.Table{j}
	}
	return c, nil
}

// CopyLog copies the journals, or one of them, record for record between data folders, brokers and files.
func CopyLog(ctx context.Context, args []string, std settings.IO) (err error) {
	c, err := parseCopy(args, std)
	if err != nil {
		return err
	}
	if c.move && kindOf(c.from) == inFolder {
		folder, err := local.OpenFolder(c.from) // locks the folder, so that no venue runs on it
		if err != nil {
			return err
		}
		defer folder.Close()
	}
	source, err := openSource(ctx, c.Settings, c.from)
	if err != nil {
		return err
	}
	defer func() { source.close() }() // hold changes it
	source.interrupted, source.join = c.interrupted, c.join
	if err := source.hold(ctx, c.Settings, c.journals, std); err != nil {
		return err
	}
	target, err := openTarget(ctx, c.Settings, c.to, c.prefix)
	if err != nil {
		return err
	}
	defer target.close()
	// The embedded broker of a target stops if its disk is full, and requests to it would then wait forever. So the
	// copy ends with the broker, and reports the broker's error instead of the connection's.
	if target.broker != nil {
		var release func()
		ctx, release = target.broker.While(ctx)
		defer release()
		defer func() { err = cmp.Or(target.broker.Err(), err) }()
	}
	facts := std
	if c.json {
		std.Out = io.Discard // only messages for humans are written to it
	}
	var m *move
	if c.move {
		if m, err = openMove(ctx, c, source, target); err != nil {
			return err
		}
		defer m.close()
	}
	fmt.Fprintf(std.Out, "copying from the %s to the %s\n", source, target)
	all := []copied{}
	for _, j := range c.journals {
		one, err := copyJournal(ctx, j, source, target, std)
		if err != nil {
			return err
		}
		all = append(all, one)
	}
	if err := target.finish(); err != nil {
		return err
	}
	if m != nil {
		if err := m.finish(ctx, std); err != nil {
			return err
		}
	}
	if !c.json {
		return nil
	}
	return facts.PrintJSON(all)
}

// copyJournal copies one journal and prints the result.
func copyJournal(ctx context.Context, j journals.Journal, source, target *endpoint, std settings.IO) (copied, error) {
	to, err := target.target(ctx, j.Name())
	if err != nil {
		return copied{}, err
	}
	if source.kind == inFile && !slices.Contains(source.held, j.Name()) {
		fmt.Fprintf(std.Out, "%s: the file holds nothing of it, and the target keeps what it has\n", j.Name())
		return copied{Journal: j.Name(), Sequence: record.Before.Sequence, Hash: record.Before.Hash.String()}, nil
	}
	from, err := source.source(ctx, j.Name(), std)
	if err != nil {
		return copied{}, err
	}
	if err := target.keepBase(ctx, from, std); err != nil {
		return copied{}, err
	}
	done, err := transfer.Copy(ctx, j.Rules, from, to, tellWork(j.Name(), std.Progress()))
	if err != nil {
		return copied{}, err
	}
	one := copied{Journal: j.Name(), Records: done.Records, Found: done.Found, Skipped: done.Skipped, After: done.After,
		Sequence: done.Tip.Sequence, Hash: done.Tip.Hash.String()}
	if done.Records == 0 {
		fmt.Fprintf(std.Out, "%s: the source holds nothing of it\n", j.Name())
		return one, nil
	}
	fmt.Fprintf(std.Out, "%s: %d records, %d of them were there, %d of them readers skip; both end with sequence %d, hash %s\n",
		j.Name(), done.Records, done.Found, done.Skipped, done.Tip.Sequence, done.Tip.Hash)
	if one.Restored = done.Restored; done.Restored > 0 {
		fmt.Fprintf(std.Out, "%s: the source's brokers had replaced the timestamps of %d records; they are restored\n", j.Name(), done.Restored)
	}
	if done.After > 0 {
		fmt.Fprintf(std.Out, "%s: readers skip the last %d records, as they skip what lost a race\n", j.Name(), done.After)
	}
	if !source.join { // the offsets of a joined log need not be those of the topic
		one.Moved, err = source.moved(ctx, j.Name(), done.Records, std)
	}
	return one, err
}

// keepBase stores the base of a trimmed source in the data folder of the target, before any record is copied. A file gets
// the base with the records. Brokers store none, so keepBase prints the base for the venue that will read them.
func (p *endpoint) keepBase(ctx context.Context, from transfer.Log, std settings.IO) error {
	b, err := from.Base(ctx)
	if err != nil || b == nil || p.kind == inFile {
		return err
	}
	fmt.Fprintf(std.Out, "%s: the source begins at record %d; the archive holds what is before it\n", b.Journal, b.Sequence)
	if p.bases == nil {
		fmt.Fprintf(std.Out, "%s: brokers keep no base. A venue on them needs it in its Postgres or in bases/%s%s-%d.json of its data folder: %s\n",
			b.Journal, p.client.Prefix(), b.Journal, b.Partition, b.JSON())
		return nil
	}
	return p.bases.Keep(ctx, *b)
}

// endpoint is a data folder, brokers or a file.
type endpoint struct {
	kind   string
	path   string          // of a file
	name   string          // its name in the arguments
	client *journal.Client // nil for a file
	broker *broker.Broker  // of the target, if it is a data folder
	bases  base.Keeper     // likewise
	close  func()

	history journal.History // of a source; nil for a file

	interrupted bool     // leave out the incomplete end of a file
	held        []string // the journals of which a file has records

	join     bool // begin with the archives
	archives *archives
}

// String returns the kind and the name of the endpoint, for humans.
func (p *endpoint) String() string { return p.kind + " " + p.name }

// The kinds of endpoints.
const (
	inFolder  = "data folder"
	onBrokers = "brokers"
	inFile    = "file"
)

// kindOf returns the kind of an endpoint, from its name and the file or folder with that name.
func kindOf(name string) string {
	about, err := os.Stat(name)
	switch {
	case err == nil && about.IsDir():
		return inFolder
	case err == nil:
		return inFile
	case transfer.Brokers(name) != nil:
		return onBrokers
	case filepath.Ext(name) != "" && !strings.HasSuffix(name, string(filepath.Separator)):
		return inFile
	}
	return inFolder
}

// openSource opens an endpoint to copy from.
func openSource(ctx context.Context, s *settings.Settings, name string) (*endpoint, error) {
	p, opened, err := openNamed(ctx, s, name, s.Kafka.Prefix)
	if opened || err != nil {
		return p, err
	}
	brokers, stop, err := folderBrokers(ctx, name, s.Progress)
	if err != nil {
		return nil, err
	}
	return p, p.connect(ctx, s.Embedded(), brokers, s.Kafka.Prefix, stop)
}

// openTarget opens an endpoint to copy to. It creates a missing data folder and locks it, so that no node runs on it.
func openTarget(ctx context.Context, s *settings.Settings, name, prefix string) (*endpoint, error) {
	p, opened, err := openNamed(ctx, s, name, prefix)
	if opened || err != nil {
		return p, err
	}
	folder, err := local.OpenFolder(name)
	if err != nil {
		return nil, err
	}
	if err := folder.CheckRetired(); err != nil {
		folder.Close()
		return nil, err
	}
	b, err := broker.Start(ctx, broker.Config{Dir: folder.Path("kafka"), Sync: true, Logger: slog.New(slog.DiscardHandler), Checked: tellChecked(s.Progress, time.Now)})
	if err != nil {
		folder.Close()
		return nil, err
	}
	p.broker, p.bases = b, base.Folder{Dir: folder.Path("bases"), TopicPrefix: prefix}
	// The folder is unlocked last: otherwise a node could start and find the broker's files in use.
	return p, p.connect(ctx, s.Embedded(), b.Addrs(), prefix, func() { b.Close(); folder.Close() })
}

// openNamed opens a file or brokers. For a data folder it only returns the kind.
func openNamed(ctx context.Context, s *settings.Settings, name, prefix string) (p *endpoint, opened bool, err error) {
	p = &endpoint{kind: kindOf(name), name: name, close: func() {}}
	switch p.kind {
	case inFile:
		p.path = name
	case onBrokers:
		err = p.connect(ctx, s, transfer.Brokers(name), prefix, func() {})
	default:
		return p, false, nil
	}
	return p, true, err
}

// same reports whether two names refer to the same file or folder.
func same(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}

// connectWithin bounds the wait for the first answer of brokers.
const connectWithin = 30 * time.Second

// connect creates the client of the endpoint and checks that the brokers answer. stop is called when the endpoint is closed.
func (p *endpoint) connect(ctx context.Context, s *settings.Settings, brokers []string, prefix string, stop func()) error {
	config, err := s.JournalConfig(brokers)
	if err == nil {
		config.Prefix = prefix
		p.client, err = journal.NewClient(config)
	}
	if err != nil {
		stop()
		return err
	}
	p.close = func() { p.client.Close(); stop() }
	asking, cancel := context.WithTimeout(ctx, connectWithin)
	defer cancel()
	if err := p.client.Ping(asking); err != nil {
		p.close()
		return fmt.Errorf("%s: %w", p, err)
	}
	return nil
}

// source returns the log of a journal to copy from. Records that the topic does not hold any more come from the archive.
func (p *endpoint) source(ctx context.Context, name string, std settings.IO) (transfer.Log, error) {
	switch {
	case p.kind == inFile && p.interrupted:
		return transfer.InterruptedSource(p.path, name, journals.All().Names()...), nil
	case p.kind == inFile:
		return transfer.Source(p.path, name, journals.All().Names()...), nil
	case p.join:
		cfg, err := p.archives.config(ctx, name, 0)
		if err != nil {
			return nil, err
		}
		a, err := archive.Open(ctx, cfg)
		if err != nil {
			return nil, err
		}
		return wholelog.Join(a, name, transfer.Topic(p.client, name, p.String())), nil
	}
	return wholelog.Log(p.client, p.history, name, p.String(), func(lacking error) { fmt.Fprintf(std.Out, "%s: %v\n", name, lacking) }), nil
}

// hold compares the logs of a source with every known position: a log that lost its end must not become the backup of
// the complete one. A file must have a record of one of the journals.
func (p *endpoint) hold(ctx context.Context, s *settings.Settings, table journals.Table, std settings.IO) (err error) {
	if p.kind == inFile {
		p.held, err = transfer.Held(ctx, p.path, table.Names())
		return err // and only the chain of a file can be verified
	}
	of := *s
	of.Kafka.Brokers = p.name
	if p.kind == inFolder {
		of.Data, of.Kafka.Brokers = p.name, ""
	}
	archives, opened := newArchives(&of), p.close
	p.close = func() { opened(); archives.close() }
	if p.archives = archives; p.join {
		fmt.Fprintln(std.Err, "perpetua: the source is compared with the archive alone, because it may have lost its beginning")
		return nil
	}
	p.history = archives.history()
	p.client.SetHistory(p.history)
	known := openAtHand(ctx, &of)
	defer known.close()
	known.addBases(p.client)
	if err := addFolderBases(&of, p.client); err != nil {
		return err
	}
	return known.holdOrTell(ctx, p.client, std.Err, table...)
}

// target returns the log of a journal to copy to. It creates a missing topic; an existing one must have the settings of
// a journal. Its records are compared with the source later: they may begin at the source's base.
func (p *endpoint) target(ctx context.Context, name string) (transfer.Log, error) {
	if p.kind == inFile {
		return transfer.Target(p.path, name), nil
	}
	if err := p.client.EnsureTopics(ctx, name); err != nil {
		return nil, err
	}
	if err := p.client.CheckSettings(ctx, name); err != nil {
		return nil, err
	}
	return transfer.Topic(p.client, name, p.String()), nil
}

// finish is called after all journals were copied to the endpoint.
func (p *endpoint) finish() error {
	if p.kind != inFile {
		return nil
	}
	return transfer.Finish(p.path)
}

// moved prints a message if the source has grown during the copy, and returns the source's end offset in that case. The
// copy is complete up to the position that was printed.
func (p *endpoint) moved(ctx context.Context, name string, copied int64, std settings.IO) (int64, error) {
	if p.kind == inFile {
		return 0, nil
	}
	end, err := p.client.Tip(ctx, name, 0)
	if err != nil || end <= copied {
		return 0, err
	}
	fmt.Fprintf(std.Out, "%s: the source has moved on to offset %d meanwhile: copy again once nobody writes to it\n", name, end)
	return end, nil
}

// folderBrokers returns the brokers of the log in a data folder: those of the node that runs on the folder, or else an
// embedded one that serves the log until stop is called.
func folderBrokers(ctx context.Context, dir string, progress func(string)) (brokers []string, stop func(), err error) {
	folder := local.Folder{Dir: dir}
	running, ok, err := local.ReadRunFile(folder.Path("run.json"))
	if err != nil {
		return nil, nil, err
	}
	if ok {
		return running.Kafka, func() {}, nil
	}
	if folder.Follows() == local.FollowsBrokers {
		return nil, nil, fmt.Errorf("the folder %s has no log: its node follows the brokers of a venue, and does not run; name the brokers with --kafka-brokers", dir)
	}
	if _, err := os.Stat(folder.Path("kafka")); err != nil {
		return nil, nil, fmt.Errorf("no log in %s: %w", dir, err)
	}
	b, err := broker.Start(ctx, broker.Config{Dir: folder.Path("kafka"), Sync: true, Logger: slog.New(slog.DiscardHandler), Checked: tellChecked(progress, time.Now)})
	if err != nil {
		return nil, nil, err
	}
	return b.Addrs(), func() { b.Close() }, nil
}
