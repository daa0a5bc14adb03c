package tools

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/whatif"
)

// whatIfRequest holds the arguments of `perpetua audit what-if`.
type whatIfRequest struct {
	verifyRequest // where the log is, with nothing to compare it with
	whatif.Config
	set []string
}

// whatIfOutput is the JSON output of WhatIf.
type whatIfOutput struct {
	Equal bool     `json:"equal"` // nothing differs
	Set   []string `json:"set"`
	whatif.Report
}

func parseWhatIf(args []string, std settings.IO) (r whatIfRequest, err error) {
	r.Config.Overrides, r.set = whatif.Overrides{}, []string{}
	r.Settings, err = settings.Parse("audit what-if", args, std, func(fs *flag.FlagSet) {
		fs.Func("set", "override a parameter, as SYMBOL.parameter=value; may be repeated (default: compare the build that decided the log with this one)",
			func(s string) error {
				r.set = append(r.set, s)
				return r.Config.Overrides.Set(s)
			})
		fs.Int64Var(&r.From, "from", 0, "first record to decide with the overrides")
		fs.Int64Var(&r.To, "to", -1, "last record to decide with the overrides (default: the last one of the log)")
		fs.BoolVar(&r.Cumulative, "cumulative", false, "decide each record on the state that follows from the earlier decisions, not on the recorded state")
		fs.IntVar(&r.Differences, "differences", 0, "how many single differences to print")
		fs.StringVar(&r.file, "file", "", "read the log in a file that log copy wrote")
		fs.StringVar(&r.archive, "archive", "", "read the archive in a bucket, named by its URL")
		settings.JSONFlag(fs, &r.json)
	})
	if err != nil {
		return r, err
	}
	if r.From < 0 || r.To < -1 || r.Differences < 0 {
		return r, settings.Usagef("--from and --differences must not be negative, and --to must be a record or -1, the last one")
	}
	r.rows, r.chainOnly = "false", true
	r.journals, err = journals.All().Only(journals.Trading)
	if err != nil {
		return r, err
	}
	return r, r.check()
}

// WhatIf decides the records of the journal trading again under other parameters of instruments, and prints the differences. Without
// an override, it fails if there are any: then this build decides differently. The venue may be running.
func WhatIf(ctx context.Context, args []string, std settings.IO) error {
	r, err := parseWhatIf(args, std)
	if err != nil {
		return err
	}
	at, err := r.open(ctx, std)
	if err != nil {
		return err
	}
	defer at.close()
	if at.archive != nil {
		if err := requireArchive(ctx, r.journals, r.archive, at.archive); err != nil {
			return err
		}
	}
	if r.Source, err = at.source(ctx, r.journals[0]); err != nil {
		return err
	}
	r.Progress = everySecond(journals.Trading, std.Progress())
	report, err := whatif.Run(ctx, r.Config)
	if wrong := new(whatif.InvalidError); errors.As(err, &wrong) {
		return settings.Usagef("%v", err)
	}
	if panicked := new(decide.PanicError); errors.As(err, &panicked) {
		fmt.Fprintln(std.Err, panicked.Stack)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", journals.Trading, err)
	}
	if r.json {
		if err := std.PrintJSON(whatIfOutput{report.Equal(), r.set, report}); err != nil {
			return err
		}
	} else {
		r.print(std.Out, &report)
	}
	if len(r.set) == 0 && !report.Equal() {
		return errors.New("this build decides records differently")
	}
	return nil
}

// print prints a report for humans.
func (r *whatIfRequest) print(out io.Writer, report *whatif.Report) {
	fmt.Fprintf(out, "%s: %d records read, to hash %s; decided again %s\n", report.Journal, report.Records, report.Tip.Hash, r.scope(report))
	row := func(n int64, text string) {
		if n > 0 {
			fmt.Fprintf(out, "%12d %s\n", n, text)
		}
	}
	row(report.Same, "decided the same")
	undecided := "not decided: the genesis and the starts of terms"
	if r.Cumulative {
		undecided += ", and statements of liabilities"
	}
	row(report.Undecided, undecided)
	row(sum(report.NotRedecidable), "not re-decidable, because they do not hold their input or have an older form: "+byName(report.NotRedecidable))
	for _, kind := range slices.Sorted(maps.Keys(report.Different)) {
		row(report.Different[kind], whatIfKinds[kind])
	}
	for i := range report.Accounts {
		printAccount(out, &report.Accounts[i])
	}
	for i := range report.Differences {
		d := &report.Differences[i]
		about := ""
		if d.Account != "" {
			about = " of " + d.Account
		}
		fmt.Fprintf(out, "record %d, %s, %s%s: %s → %s\n", d.Position.Sequence, d.Time, d.Type, about, lines(d.Recorded), lines(d.WhatIf))
	}
}

// scope says which records were decided again, and how.
func (r *whatIfRequest) scope(report *whatif.Report) string {
	under := "by this build"
	if len(r.set) > 0 {
		under = "with " + strings.Join(r.set, ", ")
	}
	switch {
	case r.Cumulative && r.To >= 0:
		return fmt.Sprintf("from %d on %s up to %d, each on the state that follows from the earlier decisions", report.From, under, r.To)
	case r.Cumulative:
		return fmt.Sprintf("from %d on %s, each on the state that follows from the earlier decisions", report.From, under)
	case r.To >= 0:
		return fmt.Sprintf("from %d to %d %s, each on the recorded state", report.From, r.To, under)
	}
	return fmt.Sprintf("from %d on %s, each on the recorded state", report.From, under)
}

// whatIfKinds has the kinds of differences in words.
var whatIfKinds = map[whatif.Kind]string{
	whatif.Acceptance:   "accepted in only one of the worlds",
	whatif.Reason:       "accepted in neither world, for different reasons",
	whatif.Fills:        "with other trades",
	whatif.Money:        "with other amounts of money",
	whatif.Other:        "with other events",
	whatif.Liquidations: "liquidations in only one of the worlds",
	whatif.Steps:        "more steps of the engine",
}

// printAccount prints the differences of one account.
func printAccount(out io.Writer, a *whatif.Account) {
	name := a.CustomerCode
	if name == "" {
		name = "the venue's account " + string(a.Account)
	}
	fmt.Fprintf(out, "%s:\n", name)
	for _, s := range a.Sums {
		fmt.Fprintf(out, "  %s %s → %s, first at record %d\n", s.Type, s.Recorded, s.WhatIf, s.First.Sequence)
	}
	for _, c := range []struct {
		*whatif.Count
		one, more string
	}{
		{a.Refused, "accepted command is refused", "accepted commands are refused"},
		{a.Accepted, "refused command is accepted", "refused commands are accepted"},
		{a.Avoided, "liquidation is avoided", "liquidations are avoided"},
		{a.Added, "liquidation is added", "liquidations are added"},
	} {
		switch {
		case c.Count == nil:
		case c.Number == 1:
			fmt.Fprintf(out, "  1 %s, at record %d\n", c.one, c.First.Sequence)
		default:
			fmt.Fprintf(out, "  %d %s, first at record %d\n", c.Number, c.more, c.First.Sequence)
		}
	}
}

// lines joins the lines of one side of a difference.
func lines(all []string) string {
	if len(all) == 0 {
		return "nothing"
	}
	return strings.Join(all, "; ")
}
