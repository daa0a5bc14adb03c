package readmodels

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// RebuildSchema is the schema in which rebuilds make their rows.
const RebuildSchema = "rebuilt"

// Rebuild replays the log into an empty schema, checks the new rows against a fold of the log, compares them with the live
// rows, and makes the live rows equal to them. The venue may run during a rebuild.
type Rebuild struct {
	Replay
	Live *pgxpool.Pool
	// Schema is that of Beside.
	Schema string
	// CompareOnly ends the rebuild after the comparison.
	CompareOnly bool
	// Confirm is called before the live rows change. Its error ends the rebuild.
	Confirm func(ctx context.Context) error
	// Print reports what was found and done. It must not be nil.
	Print func(line string)
}

// Rebuilt reports what a rebuild has found and done.
type Rebuilt struct {
	Positions   []record.LogPosition          `json:"positions"`   // of the new rows
	Differences []string                      `json:"differences"` // between the new rows and the log; none if the rebuild continued
	Tables      []projections.TableDifference `json:"tables"`      // live tables that differed from the new ones
	Switched    bool                          `json:"switched"`    // the live tables equal the new ones
	Written     int64                         `json:"written"`     // live rows
}

// settle bounds how long Rebuild waits for live rows that are behind the new ones and come closer.
const settle = 5 * time.Second

// Run replays every journal up to the given position, at least. An error means that the live rows were not changed. The
// report then holds the findings so far.
func (b Rebuild) Run(ctx context.Context, goals []record.Position) (report Rebuilt, err error) {
	report = Rebuilt{Positions: []record.LogPosition{}, Differences: []string{}, Tables: []projections.TableDifference{}}
	return report, b.run(ctx, goals, &report)
}

// run fills in the report. It brings the new rows close to the live positions before each step in which projectors wait for
// the replay.
func (b Rebuild) run(ctx context.Context, goals []record.Position, report *Rebuilt) error {
	r := b.begin()
	defer r.end()
	merge, err := projections.OpenMerge(ctx, b.Live, b.Schema, r.catchUp) // fails if the live tables are altered: before the replay
	if err != nil {
		return err
	}
	defer merge.Close()
	if err := r.follow(ctx, goals); err != nil {
		return err
	}
	if err := b.check(ctx, r, report); err != nil {
		return err
	}
	live, err := b.positions(ctx, r)
	if err != nil {
		return err
	}
	if err := r.catchUp(ctx, live); err != nil {
		return err
	}
	if err := b.await(ctx, r); err != nil {
		return err
	}
	if err := b.compare(ctx, r, merge, report); err != nil || b.CompareOnly {
		return err
	}
	if err := b.Confirm(ctx); err != nil {
		return err
	}
	if live, err = b.positions(ctx, r); err != nil {
		return err
	}
	if err := r.catchUp(ctx, live); err != nil {
		return err
	}
	done, err := merge.Apply(ctx)
	if err != nil {
		return err
	}
	report.Switched, report.Written = true, done.Rows
	b.say("the live tables equal the new ones; %d rows were written, and the projector waited for at most %v",
		done.Rows, done.Blocked.Round(time.Millisecond))
	return nil
}

func (b Rebuild) say(format string, args ...any) { b.Print(fmt.Sprintf(format, args...)) }

// check compares the new rows with the fold and with each other.
func (b Rebuild) check(ctx context.Context, r *replay, report *Rebuilt) error {
	if err := r.compareFolds(ctx); err != nil {
		return err
	}
	broken, err := Broken(ctx, b.Target)
	if err != nil {
		return err
	}
	found := append(r.found, broken...)
	report.Positions, report.Differences = r.positions(), append(report.Differences, found...)
	for _, difference := range found {
		b.Print(difference)
	}
	if len(found) > 0 {
		return fmt.Errorf("%d differences between the new rows and the log at %s: not switched", len(found), joined(r))
	}
	b.say("the new rows equal the log at %s", joined(r))
	return nil
}

// compare reports which live tables differ.
func (b Rebuild) compare(ctx context.Context, r *replay, merge *projections.Merge, report *Rebuilt) error {
	differences, err := merge.Compare(ctx)
	if err != nil {
		return err
	}
	report.Tables = append(report.Tables, differences...)
	live, err := b.positions(ctx, r)
	if err != nil {
		return err
	}
	for _, j := range r.journals {
		if at := live[j.Rules.Journal()].Position.Sequence; at < j.at.Sequence {
			b.say("the live rows of %s are behind, at sequence %d of %d: what came after it counts as a difference",
				j.Rules.Journal(), at, j.at.Sequence)
		}
	}
	for _, d := range differences {
		b.Print(d.String())
	}
	if len(differences) == 0 {
		b.Print("every table equals the live one")
	}
	return nil
}

// positions returns the checkpoints of the live rows, by journal.
func (b Rebuild) positions(ctx context.Context, r *replay) (map[string]projections.Checkpoint, error) {
	live := make(map[string]projections.Checkpoint)
	for _, j := range r.journals {
		name := j.Rules.Journal()
		c, err := projections.ReadCheckpoint(ctx, b.Live, name, 0)
		if err != nil {
			return nil, err
		}
		live[name] = c
	}
	return live, nil
}

// await waits until the live rows have reached the new ones, so that both can be compared as of one record. It stops waiting
// if they have not moved for the time of settle, because no projector runs then.
func (b Rebuild) await(ctx context.Context, r *replay) error {
	deadline, last := time.Now().Add(settle), int64(-1)
	for {
		live, err := b.positions(ctx, r)
		if err != nil {
			return err
		}
		behind, sum := false, int64(0)
		for _, j := range r.journals {
			at := live[j.Rules.Journal()].Position.Sequence
			behind, sum = behind || at < j.at.Sequence, sum+at
		}
		now := time.Now()
		if sum != last {
			deadline, last = now.Add(settle), sum
		}
		if !behind || now.After(deadline) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// catchUp brings the new rows to the live positions that are ahead of them. It implements projections.Follow.
func (r *replay) catchUp(ctx context.Context, live map[string]projections.Checkpoint) error {
	goals := make([]record.Position, len(r.journals))
	for i, j := range r.journals {
		goals[i] = j.at
		if c := live[j.Rules.Journal()]; c.Journal != "" && c.Position.Sequence > j.at.Sequence {
			goals[i] = c.Position
		}
	}
	return r.follow(ctx, goals)
}

// joined describes the positions of the new rows in one line.
func joined(r *replay) string {
	var texts []string
	for _, at := range r.positions() {
		texts = append(texts, at.String())
	}
	return strings.Join(texts, ", ")
}
