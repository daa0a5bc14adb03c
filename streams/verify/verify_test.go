package verify_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/domain/reference"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/verify"
)

// TestSoundLogs verifies the three journals, with one worker and with several.
func TestSoundLogs(t *testing.T) {
	for _, s := range samples() {
		t.Run(s.name(), func(t *testing.T) {
			n := int64(len(s.records))
			var first verify.Report
			for _, workers := range []int{1, 4} {
				for _, span := range []int{37, 0} {
					cfg := s.with(s.records)
					cfg.Workers, cfg.SpanRecords = workers, span
					told := int64(0)
					cfg.Progress = func(n int64) { told = n }
					report := run(t, cfg)
					d := report.Decided
					if report.Difference != nil || report.Records != n || report.Tip.Sequence != n-1 || told != n || d.Undecided != 2 ||
						d.Same+d.Undecided+total(d.NotRedecided)+total(d.NotReproduced) != n || d.Same < n*7/10 {
						t.Fatalf("%d workers: %d told of %d records: %+v", workers, told, n, report)
					}
					if first.Records == 0 {
						first = report
					}
					if !reflect.DeepEqual(report, first) {
						t.Errorf("%d workers and spans of %d: %+v\nand before %+v", workers, span, report, first)
					}
				}
			}
			t.Logf("%+v", first.Decided)
			chain := s.with(s.records)
			chain.Payloads = nil
			if report := run(t, chain); report.Difference != nil || report.Records != n || report.Decided.Without != n {
				t.Errorf("the chain only: %+v", report)
			}
		})
	}
}

func total(of map[string]int64) (n int64) {
	for _, one := range of {
		n += one
	}
	return n
}

// corruption changes the record n of a log, or its neighborhood. notice says that the log is still valid, and that the report
// counts the message.
type corruption struct {
	name   string
	change func(r *rand.Rand, records []*kgo.Record, n int) []*kgo.Record
	notice func(verify.Report) verify.Skipped
}

func flip(r *rand.Rand, b []byte) {
	if len(b) > 0 {
		b[r.IntN(len(b))] ^= byte(1 + r.IntN(255))
	}
}

func corruptions() []corruption {
	one := func(change func(*rand.Rand, *kgo.Record)) func(*rand.Rand, []*kgo.Record, int) []*kgo.Record {
		return func(r *rand.Rand, records []*kgo.Record, n int) []*kgo.Record {
			out := slices.Clone(records)
			out[n] = clone(records[n])
			change(r, out[n])
			return out
		}
	}
	return []corruption{
		{"flip a byte", one(func(r *rand.Rand, k *kgo.Record) { flip(r, k.Value) }), nil},
		{"flip a bit", one(func(r *rand.Rand, k *kgo.Record) { k.Value[r.IntN(len(k.Value))] ^= 1 << r.IntN(8) }), nil},
		{"change a digit", one(func(r *rand.Rand, k *kgo.Record) {
			for {
				if i := r.IntN(len(k.Value)); k.Value[i] >= '0' && k.Value[i] <= '9' {
					k.Value[i] = '0' + (k.Value[i]-'0'+1+byte(r.IntN(9)))%10
					return
				}
			}
		}), nil},
		{"flip a byte of the key", one(func(r *rand.Rand, k *kgo.Record) { flip(r, k.Key) }), nil},
		{"flip a byte of a header", one(func(r *rand.Rand, k *kgo.Record) { flip(r, k.Headers[r.IntN(len(k.Headers))].Value) }), nil},
		{"another timestamp", one(func(_ *rand.Rand, k *kgo.Record) { k.Timestamp = k.Timestamp.Add(time.Millisecond) }), nil},
		{"a header less", one(func(_ *rand.Rand, k *kgo.Record) { k.Headers = k.Headers[1:] }), nil},
		{"drop", func(_ *rand.Rand, records []*kgo.Record, n int) []*kgo.Record {
			return slices.Delete(slices.Clone(records), n, n+1)
		}, nil},
		{"swap", func(_ *rand.Rand, records []*kgo.Record, n int) []*kgo.Record {
			out := slices.Clone(records)
			out[n], out[n+1] = out[n+1], out[n]
			return out
		}, nil},
		{"repeat", func(r *rand.Rand, records []*kgo.Record, n int) []*kgo.Record {
			return slices.Insert(slices.Clone(records), n+1+r.IntN(3), records[n])
		}, func(r verify.Report) verify.Skipped { return r.Repeated }},
		{"append a copy", func(_ *rand.Rand, records []*kgo.Record, n int) []*kgo.Record {
			return append(slices.Clone(records), records[n])
		}, func(r verify.Report) verify.Skipped { return r.Repeated }},
		{"append what is no record", func(r *rand.Rand, records []*kgo.Record, _ int) []*kgo.Record {
			return append(slices.Clone(records), &kgo.Record{Value: fmt.Append(nil, "noise", r.Uint64())})
		}, func(r verify.Report) verify.Skipped { return r.Foreign }},
	}
}

// TestCorruptions changes the logs in hundreds of ways. Each is reported at its record. The last three records are left as they
// are: what can be known of them is in TestTheEnd.
func TestCorruptions(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	cases := 0
	for _, s := range samples() {
		for _, c := range corruptions() {
			for range 10 {
				n := random.IntN(len(s.records) - 3)
				records := renumber(c.change(random, s.records, n))
				if sameRecords(records, s.records) {
					continue
				}
				cases++
				cfg := s.with(records)
				cfg.Workers, cfg.SpanRecords = 1+random.IntN(3), 1+random.IntN(400)
				report := run(t, cfg)
				if c.notice != nil {
					at := slices.IndexFunc(records, func(r *kgo.Record) bool { return r.Offset >= int64(len(s.records)) })
					if c.name == "repeat" {
						at = slices.IndexFunc(records[n+1:], func(r *kgo.Record) bool { return bytes.Equal(r.Value, s.records[n].Value) }) + n + 1
					}
					if got := c.notice(report); report.Difference != nil || got.Messages != 1 || got.First != int64(at) {
						t.Errorf("%s %d of %s: %+v at offset %d: %+v", c.name, n, s.name(), got, at, report.Difference)
					}
					continue
				}
				if d := report.Difference; d == nil || d.Sequence != int64(n) || report.Records != int64(n) {
					t.Errorf("%s %d of %s: %v, %d records are right", c.name, n, s.name(), d, report.Records)
				}
			}
		}
	}
	t.Logf("%d cases", cases)
	if cases < 300 {
		t.Error("too few cases")
	}
}

func sameRecords(a, b []*kgo.Record) bool {
	return slices.EqualFunc(a, b, func(a, b *kgo.Record) bool { return a == b || reflect.DeepEqual(clone(a), clone(b)) })
}

// TestTheEnd changes the last records. Where nothing follows that would contradict, a change of what is only said by the client,
// such as the id of a command, is not found without a checkpoint: see TestCheckpoints.
func TestTheEnd(t *testing.T) {
	for _, s := range samples() {
		last := len(s.records) - 1
		for name, change := range map[string]func(*kgo.Record){
			"its outcome":          func(k *kgo.Record) { k.Value = bytes.Replace(k.Value, []byte(`"accepted"`), []byte(`"rejected"`), 1) },
			"its first byte":       func(k *kgo.Record) { k.Value[0]++ },
			"the hash before":      func(k *kgo.Record) { k.Value[len(`{"sequence":0000,"prev":"`)+9] ^= 1 },
			"its last byte":        func(k *kgo.Record) { k.Value[len(k.Value)-1]++ },
			"its timestamp":        func(k *kgo.Record) { k.Timestamp = k.Timestamp.Add(time.Second) },
			"the name of a member": func(k *kgo.Record) { k.Value = bytes.Replace(k.Value, []byte(`"events"`), []byte(`"evemts"`), 1) },
		} {
			records := slices.Clone(s.records)
			records[last] = clone(records[last])
			change(records[last])
			report := run(t, s.with(records))
			if d := report.Difference; d == nil || d.Sequence < int64(last)-1 || d.Sequence > int64(last) {
				t.Errorf("%s of the last record of %s: %v", name, s.name(), d)
			}
		}
	}
}

// forge replaces text in the first record after a sequence that has it, and chains all later records to the result.
func (s *sample) forge(t testing.TB, after int, old, by string) (records []*kgo.Record, n int) {
	t.Helper()
	n = after + slices.IndexFunc(s.records[after:], func(k *kgo.Record) bool { return bytes.Contains(k.Value, []byte(old)) })
	if n < after {
		t.Fatalf("no record of %s has %s", s.name(), old)
	}
	records = slices.Clone(s.records)
	records[n] = clone(records[n])
	records[n].Value = bytes.Replace(records[n].Value, []byte(old), []byte(by), 1)
	return s.rechain(t, records, n), n
}

// TestForgeries are logs that are well chained, with a record that the rules do not decide.
func TestForgeries(t *testing.T) {
	all := samples()
	for name, c := range map[string]struct {
		of      *sample
		old, by string
	}{
		"money from nowhere":     {all[0], `"type":"deposit","currency":"USDC","amount":"5`, `"type":"deposit","currency":"USDC","amount":"6`},
		"a fee":                  {all[0], `"fee":"`, `"fee":"1`},
		"an order that was full": {all[0], `"type":"order.filled"`, `"type":"order.canceled"`},
		"a position":             {all[0], `"cost":"-`, `"cost":"-1`},
		"a user of another name": {all[2], `"created":"20`, `"created":"21`},
	} {
		for _, workers := range []int{1, 3} {
			records, n := c.of.forge(t, 100, c.old, c.by)
			cfg := c.of.with(records)
			cfg.Workers, cfg.SpanRecords = workers, 50
			report := run(t, cfg)
			if d := report.Difference; d == nil || d.Sequence != int64(n) || d.Check != verify.CheckDecision && d.Check != verify.CheckSums {
				t.Errorf("%s in record %d: %v", name, n, d)
			}
			if name == "a position" { // the sums alone find it
				cfg.Payloads = nil
				if d := run(t, cfg).Difference; d == nil || d.Sequence != int64(n) || d.Check != verify.CheckSums {
					t.Errorf("%s in record %d, by the sums alone: %v", name, n, d)
				}
			}
		}
	}
}

// model is the independent model, which stops at a type of events.
type model struct {
	*reference.Auditor
	without string
}

func (m model) Check(value []byte) error {
	if m.without != "" && bytes.Contains(value, []byte(m.without)) {
		return fmt.Errorf("%w: %s", verify.ErrNotCovered, m.without)
	}
	return m.Auditor.Check(value)
}

// TestTheModel has the independent model check the records of trading.
func TestTheModel(t *testing.T) {
	s := samples()[0]
	cfg := s.with(s.records)
	cfg.Model = model{reference.New(), ""}
	if report := run(t, cfg); report.Difference != nil || report.Modeled != report.Records || report.NotModeled != "" {
		t.Errorf("%+v", report)
	}
	cfg.Model = model{reference.New(), "withdrawal.completed"}
	if report := run(t, cfg); report.Difference != nil || report.Modeled == 0 || report.Modeled >= report.Records || !strings.Contains(report.NotModeled, "withdrawal") {
		t.Errorf("%+v", report)
	}
	records, n := s.forge(t, 200, `"fee":"`, `"fee":"1`)
	cfg = s.with(records)
	cfg.Payloads, cfg.Model = nil, model{reference.New(), ""}
	if d := run(t, cfg).Difference; d == nil || d.Sequence != int64(n) {
		t.Errorf("a fee in record %d: %v", n, d)
	}
}

// failing is a source whose reader fails.
type failing struct{ verify.Source }

var errFailed = errors.New("the disk is gone")

func (f failing) Open(ctx context.Context) (verify.Batches, error) {
	b, err := f.Source.Open(ctx)
	return failingBatches{b}, err
}

type failingBatches struct{ verify.Batches }

func (b failingBatches) Next(ctx context.Context) ([]verify.Message, error) {
	m, err := b.Batches.Next(ctx)
	if err != nil || m[0].Offset > 0 {
		return nil, errFailed
	}
	return m, nil
}

// TestErrors: an error of a source is no difference.
func TestErrors(t *testing.T) {
	s := samples()[0]
	cfg := s.with(s.records)
	cfg.Source = failing{cfg.Source}
	if report, err := verify.Verify(t.Context(), cfg); !errors.Is(err, errFailed) || report.Difference != nil {
		t.Errorf("%v, %v", report.Difference, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if report, err := verify.Verify(ctx, s.with(s.records)); !errors.Is(err, context.Canceled) || report.Difference != nil {
		t.Errorf("%v, %v", report.Difference, err)
	}
}

// TestSnapshots compares stored states, and begins a trimmed log with one.
func TestSnapshots(t *testing.T) {
	for _, s := range samples() {
		all := s.saved(t, 0, 99, 250)
		for _, workers := range []int{1, 3} {
			cfg := s.with(s.records)
			cfg.Workers, cfg.Snapshots = workers, all
			if report := run(t, cfg); report.Difference != nil || report.Snapshots != 3 {
				t.Errorf("%s: %+v", s.name(), report)
			}
			wrong := slices.Clone(all)
			wrong[1].Load = all[2].Load
			cfg.Snapshots = wrong
			if d := run(t, cfg).Difference; d == nil || d.Check != verify.CheckState || d.Sequence != 99 {
				t.Errorf("%s: another state is stored: %v", s.name(), d)
			}
			wrong = slices.Clone(all)
			wrong[2].Position.Hash[3]++
			cfg.Snapshots = wrong
			if d := run(t, cfg).Difference; d == nil || d.Check != verify.CheckState || d.Sequence != 250 {
				t.Errorf("%s: a state of another record is stored: %v", s.name(), d)
			}

			gone := slices.Clone(all)
			gone[1].Load = func(context.Context) ([]byte, error) { return nil, verify.ErrGone }
			cfg.Snapshots = gone
			if report := run(t, cfg); report.Difference != nil || report.Snapshots != 2 {
				t.Errorf("%s: a state that is gone: %+v", s.name(), report)
			}

			twice := slices.Insert(slices.Clone(all), 2, all[1])
			cfg.Snapshots = twice
			if report := run(t, cfg); report.Difference != nil || report.Snapshots != 4 {
				t.Errorf("%s: two states of one record: %+v", s.name(), report)
			}
			twice = slices.Clone(twice)
			twice[1].Load = all[2].Load
			cfg.Snapshots = twice
			if d := run(t, cfg).Difference; d == nil || d.Check != verify.CheckState || d.Sequence != 99 {
				t.Errorf("%s: the first of two states is another: %v", s.name(), d)
			}

			const base = 80
			trimmed := log{records: s.records[base-5:], base: &record.Base{Journal: s.name(), Partitions: 1, JournalID: s.id, Sequence: base,
				Prev: position(s.records[base-1]).Hash, Term: 1}}
			cfg.Source, cfg.Snapshots = verify.FromLog(trimmed), all
			report := run(t, cfg)
			n := int64(len(s.records))
			if report.Difference != nil || report.First != base || report.Records != n-base || report.Decided.Without != 100-base || report.Snapshots != 1 || report.Before.Messages != 5 {
				t.Errorf("%s, trimmed: %+v", s.name(), report)
			}
			gone = slices.Clone(all)
			gone[1].Load = func(context.Context) ([]byte, error) { return nil, verify.ErrGone }
			cfg.Snapshots = gone
			if report := run(t, cfg); report.Difference != nil || report.Decided.Without != 251-base {
				t.Errorf("%s, trimmed, and the first state is gone: %+v", s.name(), report)
			}
			cfg.Snapshots = slices.Insert(slices.Clone(all), 2, all[1])
			if report := run(t, cfg); report.Difference != nil || report.Decided.Without != 100-base || report.Snapshots != 1 {
				t.Errorf("%s, trimmed, and with two states of one record: %+v", s.name(), report)
			}
			twice = slices.Insert(slices.Clone(all), 2, all[2])
			twice[2].Position = all[1].Position
			cfg.Snapshots = twice
			if d := run(t, cfg).Difference; d == nil || d.Check != verify.CheckState || d.Sequence != 99 {
				t.Errorf("%s, trimmed, and with different states of one record: %v", s.name(), d)
			}
			cfg.Snapshots = nil
			if report := run(t, cfg); report.Difference != nil || report.Decided.Without != n-base {
				t.Errorf("%s, trimmed and without a snapshot: %+v", s.name(), report)
			}
		}
	}
}
