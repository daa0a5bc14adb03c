package tools

import (
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/verify"
)

// verifyRequest holds the arguments of `perpetua audit verify`.
type verifyRequest struct {
	*settings.Settings
	file, archive string // where the log is; both are empty for the topics
	checkpoint    string
	trust         trust // for the checkpoint
	rules         bool  // check the records against the independent model too
	chainOnly     bool
	rows          string // "true", "false", or "" for the default
	json          bool
	journals      journals.Table
	signed        *signedTree // of the checkpoint; nil for none
}

// verified is the JSON output of VerifyLog.
type verified struct {
	Equal    bool            `json:"equal"` // nothing is wrong
	Journals []verify.Report `json:"journals"`
	Rows     *audited        `json:"rows"` // nil if the rows were not compared
}

func parseVerify(args []string, std settings.IO) (r verifyRequest, err error) {
	var name string
	r.Settings, err = settings.Parse("audit verify", args, std, func(fs *flag.FlagSet) {
		fs.StringVar(&r.file, "file", "", "verify the logs in a file that log copy wrote")
		fs.StringVar(&r.archive, "archive", "", "verify the archive in a bucket, named by its URL")
		fs.StringVar(&name, "journal", "", "journal to verify (default: all)")
		fs.BoolFunc("rows", "compare the rows with the log too (default: if the log is in topics and a database is at hand)", func(s string) error {
			r.rows = s
			return nil
		})
		fs.BoolVar(&r.rules, "rules", false, "check the journal trading against a second model of the rules too")
		fs.StringVar(&r.checkpoint, "checkpoint", "", "file with a signed checkpoint that the log must extend; needs the key store and the bucket")
		r.trust.declare(fs)
		fs.BoolVar(&r.chainOnly, "chain-only", false, "do not decide records again: check only the chain, the form, the keys, the headers, and the sums")
		settings.JSONFlag(fs, &r.json)
	})
	if err != nil {
		return r, err
	}
	if r.journals, err = journals.All().Only(name); err != nil {
		return r, err
	}
	return r, r.check()
}

// check returns a usage error if the arguments do not go together.
func (r *verifyRequest) check() error {
	switch {
	case r.file != "" && r.archive != "":
		return settings.Usagef("--file and --archive name two logs")
	case r.rows != "" && r.rows != "true" && r.rows != "false":
		return settings.Usagef("--rows is true or false, not %q", r.rows)
	case r.rows == "true" && (r.file != "" || r.archive != ""):
		return settings.Usagef("--rows compares the rows with the topics, not with a file or an archive")
	case r.chainOnly && (r.rules || r.checkpoint != ""):
		return settings.Usagef("--chain-only leaves out what --rules and --checkpoint need")
	case r.checkpoint == "" && r.trust != (trust{}):
		return settings.Usagef("--key and --policy need a --checkpoint")
	}
	if r.archive != "" {
		if err := blob.CheckURL(r.archive); err != nil {
			return settings.Usagef("--archive: %v", err)
		}
	}
	if r.checkpoint == "" {
		return nil
	}
	policy, err := r.trust.open()
	if err != nil {
		return err
	}
	if r.signed, err = openSignedTree(r.checkpoint, policy); err != nil {
		return err
	}
	if !slices.Contains(r.journals.Names(), r.signed.journal) {
		return settings.Usagef("the checkpoint is of the journal %s", r.signed.journal)
	}
	return nil
}

// VerifyLog verifies the journals: the chain, the form of every record, its key and headers, that it was rightly decided, the sums
// of the ledger, the snapshots, and the rows. It prints what it has verified, and fails at the first record that is wrong in any
// journal. The venue may be running.
func VerifyLog(ctx context.Context, args []string, std settings.IO) error {
	r, err := parseVerify(args, std)
	if err != nil {
		return err
	}
	if r.signed != nil {
		done, err := r.signed.open(ctx, r.Settings)
		if err != nil {
			return err
		}
		defer done()
	}
	at, err := r.open(ctx, std)
	if err != nil {
		return err
	}
	closeLog := sync.OnceFunc(at.close)
	defer closeLog()
	switch {
	case r.signed != nil:
		at.keys = r.signed.Keys
	case at.saved != nil && !r.chainOnly:
		keys, done := rootKeysAtHand(ctx, r.Settings, std.Err)
		defer done()
		at.keys = keys
	}
	out := verified{Equal: true, Journals: []verify.Report{}}
	var wrong error
	for _, j := range r.journals {
		report, err := r.verify(ctx, j, at, std)
		if err != nil {
			return fmt.Errorf("%s: %w", j.Name(), err)
		}
		out.Journals = append(out.Journals, report)
		if !r.json {
			r.print(std.Out, &report)
		}
		if report.Difference != nil && wrong == nil {
			out.Equal, wrong = false, fmt.Errorf("%s: %w", j.Name(), report.Difference)
		}
	}
	hasRecords := func(found verify.Report) bool { return found.Records > 0 }
	if wrong == nil && r.archive != "" && !slices.ContainsFunc(out.Journals, hasRecords) {
		out.Equal, wrong = false, noArchive(r.journals, r.archive)
	}
	if wrong == nil && at.rows {
		closeLog() // broker and database of a stopped venue serve in one place at a time, and auditRows opens them again
		if wrong, err = r.compareRows(ctx, &out, std); err != nil {
			return err
		}
	}
	if r.json {
		if err := std.PrintJSON(out); err != nil {
			return err
		}
	}
	return wrong
}

// compareRows compares the rows with the topics. wrong says that they differ.
func (r *verifyRequest) compareRows(ctx context.Context, out *verified, std settings.IO) (wrong, err error) {
	positionsAt, differences, err := auditRows(ctx, r.Settings, std)
	if err != nil {
		return nil, err
	}
	out.Rows = &audited{len(differences) == 0, positionsAt, append([]string{}, differences...)}
	if len(differences) > 0 {
		out.Equal = false
		wrong = fmt.Errorf("%d differences between the read models and the log at %s", len(differences), positions(positionsAt))
	}
	if r.json {
		return wrong, nil
	}
	for _, d := range differences {
		fmt.Fprintln(std.Out, d)
	}
	if wrong == nil {
		fmt.Fprintf(std.Out, "the read models equal the log at %s\n", positions(positionsAt))
	}
	return wrong, nil
}

// verify verifies one journal.
func (r *verifyRequest) verify(ctx context.Context, j journals.Journal, at *verifiable, std settings.IO) (verify.Report, error) {
	cfg := verify.Config{Rules: j.Rules, Codec: j.Codec}
	var err error
	if cfg.Source, err = at.source(ctx, j); err != nil {
		return verify.Report{}, err
	}
	if !r.chainOnly {
		cfg.Payloads = j.Payloads
		if cfg.Snapshots, err = at.snapshots(ctx, j); err != nil {
			return verify.Report{}, err
		}
	}
	if r.rules && j.Name() == journals.Trading {
		cfg.Model = NewModel()
	}
	if j.Name() == journals.Trading {
		cfg.Keys = at.keys
	}
	if r.signed != nil && r.signed.journal == j.Name() {
		cfg.Checkpoint = &r.signed.Checkpoint
	}
	cfg.Progress = everySecond(j.Name(), std.Progress())
	return verify.Verify(ctx, cfg)
}

// tellWork returns everySecond for several kinds of work that follow one another.
func tellWork(name string, line func(string)) func(work string, records int64) {
	var last string
	var tell func(int64)
	return func(work string, n int64) {
		if work != last {
			last, tell = work, everySecond(name+", "+work, line)
		}
		tell(n)
	}
}

// everySecond returns a function that prints how many records are done, and how fast, once a second.
func everySecond(name string, line func(string)) func(int64) {
	began := time.Now()
	last := began
	return func(n int64) {
		if now := time.Now(); now.Sub(last) >= time.Second {
			last = now
			line(fmt.Sprintf("%s: %d records, %.0f a second", name, n, float64(n)/now.Sub(began).Seconds()))
		}
	}
}

// checkedEvery is the time between two lines of the progress of a broker's check.
const checkedEvery = 3 * time.Second

// tellChecked returns what prints the progress while an embedded broker checks its log, if that takes long.
func tellChecked(line func(string), now func() time.Time) func(bytes, of int64) {
	last, shown := now(), false
	return func(bytes, of int64) {
		const mega = 1_000_000
		switch at := now(); {
		case shown && bytes >= of:
			shown = false
			line(fmt.Sprintf("%d MB of the embedded log are checked; opening it takes as long", of/mega))
		case at.Sub(last) >= checkedEvery:
			last, shown = at, true
			line(fmt.Sprintf("checking the embedded log: %d of %d MB", bytes/mega, of/mega))
		}
	}
}

// print prints a report for humans.
func (r *verifyRequest) print(out io.Writer, found *verify.Report) {
	if found.Records == 0 && found.Difference == nil {
		fmt.Fprintf(out, "%s: the log is empty\n", found.Journal)
		return
	}
	fmt.Fprintf(out, "%s: %d records from %d on", found.Journal, found.Records, found.First)
	if found.Difference == nil {
		fmt.Fprintf(out, ", to hash %s", found.Tip.Hash)
	}
	fmt.Fprintln(out)
	d := &found.Decided
	row := func(n int64, format string, args ...any) {
		if n > 0 {
			fmt.Fprintf(out, "%12d %s\n", n, fmt.Sprintf(format, args...))
		}
	}
	row(d.Same, "decided again as the same bytes")
	row(d.Undecided, "made by the journal itself: its genesis, and the records that open terms")
	row(sum(d.NotRedecided), "not re-decidable, because they do not record their input: %s", byName(d.NotRedecided))
	row(sum(d.NotReproduced), "not reproduced, because a larger step does not fail in this build: %s", byName(d.NotReproduced))
	why := "before the first snapshot of a trimmed log"
	if r.chainOnly {
		why = "with --chain-only"
	}
	row(d.Without, "not decided again, %s: only their chain and form are verified", why)
	row(sum(d.Unverified), "facts that a decision rests on and that the log does not show: %s", byName(d.Unverified))
	row(int64(found.Snapshots), "snapshots equal the state at their record")
	row(found.Modeled, "follow the independent model")
	if found.NotModeled != "" {
		fmt.Fprintf(out, "             the independent model checks no more: %s\n", found.NotModeled)
	}
	row(found.Proven, "are the records of the signed checkpoint")
	for _, s := range []struct {
		verify.Skipped
		of string
	}{{found.Repeated, "second copies of records"}, {found.Lost, "records that lost a race"}, {found.Foreign, "values that are no records of the journal"},
		{found.Before, "records before the base"}} {
		row(s.Messages, "skipped: %s, the first at offset %d", s.of, s.First)
	}
	if found.Difference != nil {
		fmt.Fprintf(out, "%s: WRONG: %v\n", found.Journal, found.Difference)
	}
}

func sum(of map[string]int64) (n int64) {
	for _, one := range of {
		n += one
	}
	return n
}

// byName formats numbers by their names.
func byName(of map[string]int64) string {
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(of)) {
		texts = append(texts, fmt.Sprintf("%s %d", name, of[name]))
	}
	return strings.Join(texts, ", ")
}

// textOrFile returns the content of the file with the name, or the text itself if there is no such file.
func textOrFile(text string) string {
	if b, err := os.ReadFile(text); err == nil {
		text = string(b)
	}
	return strings.TrimSpace(text)
}
