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
	"github.com/perpetua-exchange/perpetua/streams/whatif"
)

// whatIfRequest holds the arguments of `perpetua audit what-if`.
type whatIfRequest struct {
	verifyRequest // where the log is, with nothing to compare it with
	whatif.Config
	set []string
}

// answered is the JSON output of WhatIf.
type answered struct {
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
		fs.Int64Var(&r.From, "from", 0, "sequence of the first record to decide under the overrides")
		fs.Int64Var(&r.To, "to", -1, "sequence of the last one (default: the last record)")
		fs.BoolVar(&r.Cumulative, "cumulative", false, "decide each record on the state that follows from the earlier decisions, and not on the recorded one")
		fs.IntVar(&r.Differences, "differences", 0, "number of single differences to print")
		fs.StringVar(&r.file, "file", "", "read the log in a file that log copy wrote")
		fs.StringVar(&r.archive, "archive", "", "read the archive in a bucket, named by its URL")
		settings.JSONFlag(fs, &r.json)
	})
	if err != nil {
		return r, err
	}
	if r.From < 0 || r.To < -1 || r.Differences < 0 {
		return r, settings.Usagef("--from, --to and --differences are not negative")
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
	if r.Source, err = at.source(ctx, r.journals[0]); err != nil {
		return err
	}
	r.Told = everySecond(journals.Trading, progress(std))
	report, err := whatif.Run(ctx, r.Config)
	if wrong := new(whatif.InvalidError); errors.As(err, &wrong) {
		return settings.Usagef("%v", wrong)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", journals.Trading, err)
	}
	if r.json {
		if err := std.PrintJSON(answered{report.Equal(), r.set, report}); err != nil {
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
	under, on := "by this build", "each on the recorded state"
	if len(r.set) > 0 {
		under = "with " + strings.Join(r.set, ", ")
	}
	if r.Cumulative {
		on = "each on the state that follows from the earlier decisions"
	}
	fmt.Fprintf(out, "%s: %d records read, to hash %s; decided again from %d on %s, %s\n", report.Journal, report.Records, report.Tip.Hash, report.From, under, on)
	row := func(n int64, text string) {
		if n > 0 {
			fmt.Fprintf(out, "%12d %s\n", n, text)
		}
	}
	row(report.Same, "decided the same")
	row(report.Undecided, "not decided, but made by the journal itself or by a node")
	row(sum(report.NotRedecidable), "not re-decidable, because they do not record their input: "+byName(report.NotRedecidable))
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

// whatIfKinds has the kinds of differences in words.
var whatIfKinds = map[whatif.Kind]string{
	whatif.Acceptance:   "accepted in only one of the worlds",
	whatif.Reason:       "not accepted for another reason",
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
		what string
	}{{a.Refused, "accepted commands are refused"}, {a.Accepted, "refused commands are accepted"}, {a.Avoided, "liquidations are avoided"},
		{a.Added, "liquidations are added"}} {
		if c.Count != nil {
			fmt.Fprintf(out, "  %d %s, first at record %d\n", c.Number, c.what, c.First.Sequence)
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
