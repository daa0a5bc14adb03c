package tools

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	gocloud "gocloud.dev/blob"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/local"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/fence"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/seal"
)

// verdict is the result of a check.
type verdict string

// The verdicts. Only isFailed fails the command.
const (
	isGood    verdict = "ok"
	isWarning verdict = "warn"
	isFailed  verdict = "FAIL"
	isNote    verdict = "note"
)

// finding is one line of a diagnosis.
type finding struct {
	Check   string  `json:"check"`
	Verdict verdict `json:"verdict"`
	Message string  `json:"message"`
}

// diagnosis is everything that the checks found, in their order.
type diagnosis struct{ findings []finding }

func (d *diagnosis) add(check string, v verdict, format string, args ...any) {
	d.findings = append(d.findings, finding{check, v, strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", " ")})
}

// count returns how many findings have a verdict.
func (d *diagnosis) count(v verdict) (n int) {
	for _, f := range d.findings {
		if f.Verdict == v {
			n++
		}
	}
	return n
}

// The time limits of the checks. A chain may have to be read from genesis.
const (
	checkWithin = 20 * time.Second
	chainWithin = 5 * time.Minute
)

// Doctor checks a deployment, before it goes live and after: Kafka's settings, the replicas, topics and tips of the journals,
// the read models, the witnesses, the files of the lake and the daily files, Postgres, the clock, the disk, the fence and the
// key store. It prints a line for each finding and fails if a check failed; warnings do not fail it. It creates nothing but an
// object in the key store and in each bucket, which it removes.
func Doctor(ctx context.Context, args []string, std settings.IO) error {
	var asJSON bool
	s, err := settings.Parse("doctor", args, std, func(fs *flag.FlagSet) {
		fs.BoolVar(&asJSON, "json", false, "print the findings as JSON")
	})
	if err != nil {
		return err
	}
	d := &diagnosis{}
	d.examine(ctx, s)
	if err := ctx.Err(); err != nil {
		return err
	}
	if asJSON {
		err = d.printJSON(std.Out)
	} else {
		err = d.print(std.Out)
	}
	if err != nil {
		return err
	}
	if n := d.count(isFailed); n > 0 {
		return fmt.Errorf("%d of %d checks failed", n, len(d.findings)-d.count(isNote))
	}
	return nil
}

func (d *diagnosis) print(out io.Writer) error {
	for _, f := range d.findings {
		if _, err := fmt.Fprintf(out, "%-4s  %-20s %s\n", f.Verdict, f.Check, f.Message); err != nil {
			return err
		}
	}
	return nil
}

func (d *diagnosis) printJSON(out io.Writer) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(struct {
		Healthy  bool      `json:"healthy"`
		Warnings int       `json:"warnings"`
		Findings []finding `json:"findings"`
	}{d.count(isFailed) == 0, d.count(isWarning), d.findings})
}

// examine runs every check. A check that depends on a service that does not answer reports that and is skipped.
func (d *diagnosis) examine(ctx context.Context, s *settings.Settings) {
	rows, closeRows := d.checkPostgres(ctx, s)
	defer closeRows()
	saved := d.checkBucket(ctx, s)
	if saved != nil {
		defer saved.close()
	}
	d.checkArchive(ctx, s)
	d.checkLocks(ctx, s, saved)
	d.checkLake(ctx, s, rows, saved)
	d.checkLog(ctx, s, rows, saved)
	d.checkFolderDisk(s)
	d.checkKeys(ctx, s)
	d.add("disk image", isNote, "a cloned disk image is not detected: never start two venues from copies of one disk")
}

// checkPostgres checks that Postgres answers, its tables and its clock. The pool is nil if it does not answer.
func (d *diagnosis) checkPostgres(ctx context.Context, s *settings.Settings) (pool *pgxpool.Pool, done func()) {
	ctx, cancel := context.WithTimeout(ctx, checkWithin)
	defer cancel()
	none := func() {}
	pool, done, err := rowsAtHand(ctx, s)
	if err != nil {
		d.add("postgres", isFailed, "%v", err)
		return nil, none
	}
	if pool == nil {
		d.add("postgres", isWarning, "no Postgres is at hand, so the read models were not checked; --database-url names it")
		return nil, none
	}
	var version string
	var standby, readOnly bool
	if err := pool.QueryRow(ctx, "SELECT current_setting('server_version'), pg_is_in_recovery(), current_setting('transaction_read_only')::bool").
		Scan(&version, &standby, &readOnly); err != nil {
		d.add("postgres", isFailed, "it does not answer: %v", err)
		done()
		return nil, none
	}
	switch err := projections.CheckSession(ctx, pool); {
	case standby:
		d.add("postgres", isFailed, "version %s is a standby that takes no writes", version)
	case readOnly:
		d.add("postgres", isFailed, "version %s takes no writes: default_transaction_read_only is on, as some providers set it when the disk is full", version)
	case err != nil:
		d.add("postgres", isFailed, "%v", err)
	default:
		d.add("postgres", isGood, "version %s answers", version)
	}
	have, newest, err := projections.SchemaVersion(ctx, pool)
	if err != nil {
		d.add("tables", isFailed, "%v", err)
	} else {
		d.judgeSchema(have, newest)
	}
	if have == newest && err == nil {
		d.judgeDamage(projections.FindDamage(ctx, pool))
	}
	if outdated, err := projections.Outdated(ctx, pool); err == nil && outdated && have == newest {
		d.add("tables", isWarning, "a build before version 0.1.0 has written their rows: run perpetua migrate, which rebuilds them")
	}
	before := time.Now()
	if theirs, err := projections.PostgresTime(ctx, pool); err != nil {
		d.add("clock", isFailed, "%v", err)
	} else {
		d.judgeClock(offset(before, theirs, time.Now()))
	}
	return pool, done
}

// judgeDamage reports tables that were dropped or changed by hand.
func (d *diagnosis) judgeDamage(found projections.Damage, err error) {
	if err != nil {
		d.add("tables", isFailed, "%v", err)
	}
	if slices.Contains(found.Missing, "perpetua_jobs.river_migration") { // their migrations have not run, as if a start was interrupted
		d.add("tables", isFailed, "the tables of the jobs are missing: run perpetua migrate")
		found.Missing = slices.DeleteFunc(found.Missing, func(name string) bool { return strings.HasPrefix(name, "perpetua_jobs.") })
	}
	if len(found.Missing) > 0 {
		d.add("tables", isFailed, "missing: %s. No migration makes them again: name an empty database in --database-url, which gets its rows from the log",
			strings.Join(found.Missing, ", "))
	}
	for _, t := range found.Unlogged {
		d.add("tables", isFailed, "a crash of Postgres empties %[1]s, and a standby does not have its rows: ALTER TABLE %[1]s SET LOGGED", t)
	}
	for _, i := range found.Invalid {
		d.add("tables", isWarning, "no query uses the index %[1]s: REINDEX INDEX %[1]s", i)
	}
}

// offset returns how far another clock is ahead of this machine's, or behind it if negative. The clock was read at an
// unknown moment between before and after, so any time in that range counts as equal.
func offset(before, theirs, after time.Time) time.Duration {
	switch {
	case theirs.Before(before):
		return theirs.Sub(before)
	case theirs.After(after):
		return theirs.Sub(after)
	}
	return 0
}

// checkBucket checks that the bucket of snapshots, witnesses and files can be opened with the master key. It returns nil if
// there is none.
func (d *diagnosis) checkBucket(ctx context.Context, s *settings.Settings) *saved {
	ctx, cancel := context.WithTimeout(ctx, checkWithin)
	defer cancel()
	saved, err := openSaved(ctx, s)
	switch {
	case err != nil:
		d.add("bucket", isFailed, "%v", err)
	case saved == nil:
		d.add("bucket", isWarning, "no bucket is at hand, so witnesses and snapshots were not checked; --blob-url names it")
	default:
		if ok, err := saved.bucket.IsAccessible(ctx); err != nil || !ok {
			d.add("bucket", isFailed, "it is not accessible: %v", err)
			saved.close()
			return nil
		}
		d.judgeWrites(ctx, "bucket", saved.bucket, false)
	}
	return saved
}

// checkArchive checks the bucket of the archive, if it is another one.
func (d *diagnosis) checkArchive(ctx context.Context, s *settings.Settings) {
	if s.Stores.ArchiveURL == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, checkWithin)
	defer cancel()
	bucket, err := blob.Open(ctx, settings.Existing(s.Stores.ArchiveURL))
	if err != nil {
		d.add("archive bucket", isFailed, "%v", err)
		return
	}
	defer bucket.Close()
	d.judgeWrites(ctx, "archive bucket", bucket, true)
}

// judgeWrites writes an object to a bucket and removes it. keeps says that the bucket may refuse to remove it.
func (d *diagnosis) judgeWrites(ctx context.Context, check string, bucket *gocloud.Bucket, keeps bool) {
	name := "doctor-" + rand.Text()
	if err := bucket.WriteAll(ctx, name, []byte("written by perpetua doctor\n"), &gocloud.WriterOptions{ContentType: "text/plain"}); err != nil {
		d.add(check, isFailed, "it refuses writes: %v", err)
		return
	}
	removing, cancel := context.WithTimeout(context.WithoutCancel(ctx), checkWithin)
	defer cancel()
	err := bucket.Delete(removing, name)
	switch {
	case keeps && blob.Refused(err):
		d.add(check, isWarning, "accessible, takes writes, and refuses to remove objects, such as %s, which doctor wrote: it gets one tail, and later records when their range is full", name)
		return
	case err != nil:
		d.add(check, isFailed, "it refuses to remove the object %s, which doctor wrote: %v", name, err)
		return
	}
	d.add(check, isGood, "accessible, and takes writes")
}

// checkLog checks Kafka and the journals.
func (d *diagnosis) checkLog(ctx context.Context, s *settings.Settings, rows *pgxpool.Pool, saved *saved) {
	asking, cancel := context.WithTimeout(ctx, checkWithin)
	defer cancel()
	client, stop, err := OpenLog(asking, s)
	if err != nil {
		d.add("kafka", isFailed, "%v", err)
		return
	}
	defer stop()
	if err := client.Ping(asking); err != nil {
		d.add("kafka", isFailed, "no answer, so brokers, topics and journals were not checked: %v", err)
		return
	}
	if rows != nil {
		client.AddBases(projections.Bases{Pool: rows})
	}
	d.checkBrokers(asking, s, client)
	table := journals.All()
	if err := client.CheckTopics(asking, table.Names()...); err != nil {
		d.judgeTopics(err)
		return // a journal without its topic cannot be read
	}
	d.add("topics", isGood, "%s: settings as they must be", strings.Join(table.Names(), ", "))
	for _, j := range table {
		d.checkJournal(ctx, client, j, rows, saved)
	}
	d.checkArchives(ctx, s, client, saved, table)
	d.checkDailyFiles(ctx, s, client, saved)
	d.checkFence(ctx, s, client)
}

// checkBrokers checks the settings of the brokers and how the journals are replicated.
func (d *diagnosis) checkBrokers(ctx context.Context, s *settings.Settings, client *journal.Client) {
	if followed(s) == local.FollowsBrokers {
		d.add("brokers", isNote, "they are those of the venue that this node follows, so their settings were not checked")
		return
	}
	if len(s.Brokers()) == 0 {
		d.add("brokers", isNote, "the embedded broker keeps one copy of the log, for up to 2 GB; for more, or to survive the loss of a machine, use Kafka")
		return
	}
	brokers, err := client.BrokerSettings(ctx)
	if err != nil {
		d.add("brokers", isFailed, "%v", err)
		return
	}
	controllers, err := client.Controllers(ctx)
	if err != nil {
		d.add("controllers", isWarning, "the quorum of controllers was not checked: %v", err)
	}
	replication, err := client.Replication(ctx, journals.All().Names()...)
	if err != nil {
		d.add("replication", isFailed, "%v", err)
	}
	d.judgeBrokers(brokers, controllers, replication)
	d.judgeReplication(replication, len(brokers))
}

// checkJournal looks every remembered position up in the log, reads the chain from the last of them to the tip, and compares
// the tip with the positions of the read models and the witnesses.
func (d *diagnosis) checkJournal(ctx context.Context, client *journal.Client, j journals.Journal, rows *pgxpool.Pool, saved *saved) {
	ctx, cancel := context.WithTimeout(ctx, chainWithin)
	defer cancel()
	name := j.Name()
	k := remembered{}
	if rows != nil {
		k.rows, k.rowsErr = projections.KnownTo{DB: rows}.Positions(ctx, name, 0)
	}
	if saved != nil {
		k.snapshots, k.snapshotsErr = saved.snapshots.Positions(ctx, name, 0)
		k.witnesses, k.witnessesErr = saved.witnesses.Positions(ctx, name, 0)
	}
	var known []record.Position
	for _, source := range [][]record.Position{k.rows, k.snapshots, k.witnesses} {
		unvouched, err := client.Unvouched(ctx, name, 0, source)
		if err != nil {
			d.add("journal "+name, isFailed, "%v", err)
			return
		}
		known = append(known, unvouched...)
	}
	tip, at, err := readTip(ctx, client, j, known)
	if err != nil {
		d.add("journal "+name, isFailed, "%v", err)
		return
	}
	if tip.IsBefore() {
		d.add("journal "+name, isNote, "it has no records yet")
		return
	}
	d.add("journal "+name, isGood, "tip %v, hash %s; it holds the %d positions known of it", record.LogPosition{Journal: name, Sequence: tip.Sequence}, tip.Hash, len(known))
	if ahead := time.Until(at); ahead > clockTolerance {
		d.judgeClockOfLog(name, ahead)
	}
	if rows != nil {
		d.judgeRows(name, tip.Sequence, k.rows, k.rowsErr)
	}
	if saved != nil {
		d.judgeWitnesses(name, tip.Sequence, k.witnesses, k.witnessesErr)
		if k.snapshotsErr != nil {
			d.add("snapshots "+name, isFailed, "%v", k.snapshotsErr)
		}
	}
}

// readTip returns the position of the last valid record, and that record's time.
func readTip(ctx context.Context, client *journal.Client, j journals.Journal, known []record.Position) (tip record.Position, at time.Time, err error) {
	if err := client.Holds(ctx, j.Rules, 0, known...); err != nil {
		return tip, at, err
	}
	r := journal.NewReader(client, j.Rules, 0, lastButOne(known))
	r.OrBase(math.MaxInt64)
	r.Audit()
	defer r.Close()
	err = r.ToTip(ctx, func(entries []record.Entry) error {
		for _, e := range entries { // none at the end of a log without records
			at = e.Record.Time.Std()
		}
		return nil
	})
	return r.Position(), at, err
}

// checkFolderDisk checks the room on the disk of the data folder.
func (d *diagnosis) checkFolderDisk(s *settings.Settings) {
	folder, free, total, err := diskOf(s.Data)
	if err != nil {
		d.add("disk", isFailed, "%v", err)
		return
	}
	d.judgeDisk(folder, free, total)
}

// checkFence checks which venue holds the fence of the log.
func (d *diagnosis) checkFence(ctx context.Context, s *settings.Settings, client *journal.Client) {
	ctx, cancel := context.WithTimeout(ctx, checkWithin)
	defer cancel()
	if !keysAtHand(s) {
		return // checkKeys says so
	}
	if keysOfFollower(s) {
		d.add("fence", isNote, "this node follows a venue, and only a venue has a fence")
		return
	}
	id, location, founded, err := fence.Locate(ctx, client)
	var f fence.Fence
	if err == nil && founded {
		f, err = readFence(ctx, s, id)
	}
	d.judgeFence(f, location, founded, err, s.TakeOverCommand())
}

// readFence reads the fence of a journal in the key store of the settings.
func readFence(ctx context.Context, s *settings.Settings, id scalar.ID) (fence.Fence, error) {
	at, err := s.KeyStoreURL()
	if err != nil {
		return fence.Fence{}, err
	}
	keys, err := seal.OpenKeyStore(ctx, at)
	if err != nil {
		return fence.Fence{}, err
	}
	defer keys.Close()
	return fence.Read(ctx, keys, id)
}

// keysAtHand reports whether the settings name a key store, or the data folder belongs to the log and so has it.
func keysAtHand(s *settings.Settings) bool {
	if s.Stores.KeyURL != "" || len(s.Brokers()) == 0 {
		return true
	}
	ours, _, err := folderOfLog(s)
	return err == nil && ours
}

// checkKeys checks that the key store creates an object only once.
func (d *diagnosis) checkKeys(ctx context.Context, s *settings.Settings) {
	ctx, cancel := context.WithTimeout(ctx, checkWithin)
	defer cancel()
	if !keysAtHand(s) {
		d.add("key store", isWarning, "no key store is at hand, so it and the fence were not checked; --key-url names it")
		return
	}
	at, err := s.KeyStoreURL()
	if err == nil {
		err = seal.Probe(ctx, at)
	}
	if err != nil {
		d.add("key store", isFailed, "%v", err)
		return
	}
	d.add("key store", isGood, "it creates an object only if absent, as it must")
}

// remembered holds the positions of a journal that are stored outside of the log.
type remembered struct {
	rows, snapshots, witnesses          []record.Position
	rowsErr, snapshotsErr, witnessesErr error
}

// lastButOne returns the highest position but one by sequence, so that at least one record is read after it; Before if there
// is none.
func lastButOne(known []record.Position) record.Position {
	last, before := record.Before, record.Before
	for _, p := range known {
		switch {
		case p.Sequence > last.Sequence:
			last, before = p, last
		case p.Sequence < last.Sequence && p.Sequence > before.Sequence:
			before = p
		}
	}
	return before
}

// diskOf returns the free and total bytes of a folder's disk. For a folder that does not exist yet, it is the disk of the
// nearest existing parent.
func diskOf(dir string) (folder string, free, total uint64, err error) {
	folder, err = nearestFolder(dir)
	if err != nil {
		return folder, 0, 0, fmt.Errorf("the data folder: %w", err)
	}
	free, total, err = diskSpace(folder)
	if err != nil {
		return folder, 0, 0, fmt.Errorf("the disk of %s: %w", folder, err)
	}
	return folder, free, total, nil
}
