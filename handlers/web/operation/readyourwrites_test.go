package operation

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/handlers/web/access"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// rowsAt are rows as of a sequence, which come to a later one when they are waited for.
type rowsAt struct{ at, comes int64 }

func (r *rowsAt) Wait(ctx context.Context, sequence int64) error {
	if sequence <= r.comes {
		r.at = max(r.at, sequence)
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

// TestAwaitAnswered waits as reads do: two seconds for writes, half a second for reads, and not for other users.
func TestAwaitAnswered(t *testing.T) {
	for _, test := range []struct {
		name, user    string
		written, read int64
		comes         int64
		waits         time.Duration
		at            int64
	}{
		{"a write is reached", "a", 8, -1, 8, 0, 8},
		{"a read is reached", "a", -1, 8, 8, 0, 8},
		{"a write is not reached", "a", 8, -1, 3, waitLimit, 3},
		{"a read is not reached", "a", 4, 8, 4, lookLimit, 4},
		{"another user", "b", 8, 8, 3, 0, 3},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				answered := NewReadYourWrites()
				user := answered.Of("a")
				user.wrote(record.LogPosition{Journal: "trading", Sequence: test.written})
				user.looked(record.LogPosition{Journal: "trading", Sequence: test.read})
				rows, began := &rowsAt{3, test.comes}, time.Now()
				answered.AwaitAnswered(t.Context(), test.user, "trading", rows)
				if waited := time.Since(began); waited != test.waits || rows.at != test.at {
					t.Errorf("after %v the rows are as of %d, want %d after %v", waited, rows.at, test.at, test.waits)
				}
			})
		})
	}
}

// TestBatchesAreRecorded: the latest position of a batch counts as answered.
func TestBatchesAreRecorded(t *testing.T) {
	answered := NewReadYourWrites()
	a := Request{&Scope{Admission: access.Admission{Principal: &access.Principal{Username: "a"}}, Answered: answered.Of("a")}, carrier{ctx: t.Context(), at: new(record.LogPosition)}}
	(Journal{Name: "trading"}).SubmitAll(a, outcomes{3, 7, 5}, make([]decide.Command, 3))
	if written, _ := a.Answered.last("trading"); written != 7 {
		t.Errorf("%d is recorded", written)
	}
}

// carrier is a transport that carries nothing but a context.
type carrier struct {
	Transport
	ctx context.Context
	at  *record.LogPosition // of the answer
}

func (c carrier) Context() context.Context { return c.ctx }

func (carrier) Least() []string { return nil }

func (c carrier) AnswerAt(p record.LogPosition) { *c.at = p }

// outcomes answers the commands of a batch with positions.
type outcomes []int64

func (o outcomes) Submit(context.Context, string, decide.Command) (submit.Result, error) {
	panic("commands come together")
}

func (o outcomes) SubmitAll(context.Context, string, []decide.Command) []submit.Outcome {
	all := make([]submit.Outcome, len(o))
	for i, sequence := range o {
		all[i].Result.Position = record.LogPosition{Journal: "trading", Sequence: sequence}
	}
	return all
}

// TestPositionsAreRecordedByJournal: a write counts for its journal only.
func TestPositionsAreRecordedByJournal(t *testing.T) {
	a := NewReadYourWrites().Of("a")
	a.wrote(record.LogPosition{Journal: "onboarding", Sequence: 12})
	a.wrote(record.LogPosition{Journal: "trading", Sequence: 99})
	for name, want := range map[string]int64{"onboarding": 12, "trading": 99, "identity": -1} {
		if written, read := a.last(name); written != want || read != -1 {
			t.Errorf("%s: %d written and %d read, want %d", name, written, read, want)
		}
	}
	var none Answered
	none.wrote(record.LogPosition{Journal: "trading"})
	if written, read := none.last("trading"); written != -1 || read != -1 {
		t.Error("no memory records something")
	}
}

// standsAt is a source that has reached a sequence.
type standsAt int64

func (s standsAt) Position() record.Position { return record.Position{Sequence: int64(s)} }

// TestRecordedPositionsThatAreForgotten: a full memory forgets what all sources have reached, and after that the
// oldest: never the position of a user who wrote just now, and whose write is not in all sources yet.
func TestRecordedPositionsThatAreForgotten(t *testing.T) {
	write := func(r *ReadYourWrites, user int, sequence int64) {
		r.Of(strconv.Itoa(user)).wrote(record.LogPosition{Journal: "trading", Sequence: sequence})
	}
	t.Run("reached", func(t *testing.T) {
		answered := NewReadYourWrites()
		answered.ReadsFrom(map[string][]Positioned{"trading": {standsAt(9), standsAt(5)}})
		const early = 1000
		for i := range early {
			write(answered, i, 6) // the fold has it, the rows have not
		}
		for i := range 4 * maxRecorded {
			write(answered, early+i, 5)
		}
		for i := range early {
			if written, _ := answered.Of(strconv.Itoa(i)).last("trading"); written != 6 {
				t.Fatalf("the position of user %d is forgotten", i)
			}
		}
		if len(answered.latest) > maxRecorded {
			t.Errorf("%d positions are recorded", len(answered.latest))
		}
	})
	t.Run("not reached", func(t *testing.T) {
		r := NewReadYourWrites()
		for i := range 4 * maxRecorded {
			write(r, i, 7)
			write(r, 0, int64(i)) // its user goes on writing
			for _, user := range []int{0, i, max(0, i-maxRecorded/2)} {
				if written, _ := r.Of(strconv.Itoa(user)).last("trading"); written < 0 {
					t.Fatalf("user %d is forgotten after %d", user, i)
				}
			}
			if len(r.latest) > maxRecorded {
				t.Fatalf("%d positions are recorded", len(r.latest))
			}
		}
	})
}

// TestReadsOfLaterSources: what a user has read from a fold is waited for in rows, but not for as long as what it wrote.
func TestReadsOfLaterSources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, test := range []struct {
			name          string
			written, read int64
			rows          rowsAt
			asOf          int64
			took          time.Duration
		}{
			{"read, the rows reach it", -1, 8, rowsAt{3, 8}, 8, 0},
			{"read, the rows do not reach it", -1, 8, rowsAt{3, 3}, 3, lookLimit},
			{"written, the rows do not reach it", 8, -1, rowsAt{3, 3}, 3, waitLimit},
			{"written, and later ones read, which the rows do not reach", 5, 8, rowsAt{3, 5}, 5, lookLimit},
		} {
			answered := NewReadYourWrites().Of("a")
			answered.wrote(record.LogPosition{Journal: "trading", Sequence: test.written})
			answered.looked(record.LogPosition{Journal: "trading", Sequence: test.read})
			at := &record.LogPosition{}
			rows, start := test.rows, time.Now()
			err := ReadRows(Request{&Scope{Answered: answered}, carrier{ctx: t.Context(), at: at}}, "trading", &rows,
				func(context.Context) (int64, error) { return rows.at, nil })
			if err != nil || at.Sequence != test.asOf {
				t.Errorf("%s: as of %v, %v", test.name, at, err)
			}
			if took := time.Since(start); took < test.took || took > test.took+rereadAfter {
				t.Errorf("%s: took %v, want %v", test.name, took, test.took)
			}
		}
	})
}
