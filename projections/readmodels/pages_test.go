package readmodels_test

import (
	"slices"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/trades"
)

// TestPages holds pages of every kind against a model: a sorted slice of keys.
func TestPages(t *testing.T) {
	ctx := t.Context()
	_, _, pool := venue(t, 8, 600)
	filter := trades.Filter{Scope: projections.Scope{CustomerCode: "C1"}}
	whole, err := trades.Page(ctx, pool, filter, projections.Page{Size: 10000})
	must(t, err)
	var keys []projections.Key
	for _, r := range whole.Rows {
		keys = append(keys, r.Key)
	}
	if len(keys) < 20 {
		t.Fatalf("only %d rows", len(keys))
	}
	cursors := []*projections.Key{nil, {Sequence: -1}, {Sequence: 1 << 40}, &keys[0], &keys[1], &keys[7], &keys[len(keys)-1],
		{Sequence: keys[4].Sequence, Ordinal: keys[4].Ordinal + 5}}
	for _, size := range []int{1, 3, len(keys), len(keys) + 1} {
		for _, after := range cursors {
			for _, before := range cursors {
				for _, descending := range []bool{false, true} {
					p := projections.Page{Size: size, After: after, Before: before, Descending: descending}
					got, err := trades.Page(ctx, pool, filter, p)
					must(t, err)
					want, next, previous := model(keys, p)
					var have []projections.Key
					for _, r := range got.Rows {
						have = append(have, r.Key)
					}
					if !slices.Equal(have, want) || got.HasNext != next || got.HasPrevious != previous {
						t.Fatalf("size %d after %v before %v descending %v: %v %v %v, want %v %v %v", size, after, before, descending,
							have, got.HasNext, got.HasPrevious, want, next, previous)
					}
				}
			}
		}
	}
}

// TestPagesBeforeATime: in either order a page ends before the records of the time, which may be one of a record, one
// between two, or one that no record has reached yet.
func TestPagesBeforeATime(t *testing.T) {
	ctx := t.Context()
	_, entries, pool := venue(t, 8, 600)
	filter := trades.Filter{Scope: projections.Scope{CustomerCode: "C1"}}
	for _, descending := range []bool{false, true} {
		whole, err := trades.Page(ctx, pool, filter, projections.Page{Size: 10000, Descending: descending})
		must(t, err)
		if len(whole.Rows) < 20 {
			t.Fatalf("only %d rows", len(whole.Rows))
		}
		times := []scalar.Time{1, entries[len(entries)-1].Record.Time + 1, entries[len(entries)-1].Record.Time + scalar.Day}
		for _, i := range []int{0, 7, len(whole.Rows) - 1} {
			at := whole.Rows[i].Value.Time
			times = append(times, at-1, at, at+1)
		}
		for _, at := range times {
			var want []projections.Key
			for _, r := range whole.Rows {
				if v := r.Value.Time; v < at && !descending || v > at && descending {
					want = append(want, r.Key)
				}
			}
			next, previous := len(want) < len(whole.Rows), len(want) > 3
			want = want[max(0, len(want)-3):]
			got, err := trades.Page(ctx, pool, filter, projections.Page{Size: 3, BeforeTime: at, Descending: descending})
			must(t, err)
			var have []projections.Key
			for _, r := range got.Rows {
				have = append(have, r.Key)
			}
			if !slices.Equal(have, want) || got.HasNext != next || got.HasPrevious != previous {
				t.Errorf("before %v descending %v: %v %v %v, want %v %v %v", at, descending, have, got.HasNext, got.HasPrevious, want, next, previous)
			}
		}
	}
}

func model(keys []projections.Key, p projections.Page) (page []projections.Key, next, previous bool) {
	sorted := slices.Clone(keys)
	order := func(a, b projections.Key) int { return a.Compare(b) }
	if p.Descending {
		slices.Reverse(sorted)
		order = func(a, b projections.Key) int { return b.Compare(a) }
	}
	within := slices.DeleteFunc(slices.Clone(sorted), func(k projections.Key) bool {
		return p.After != nil && order(k, *p.After) <= 0 || p.Before != nil && order(k, *p.Before) >= 0
	})
	page = within
	if len(page) > p.Size {
		if p.Before != nil && p.After == nil {
			page = page[len(page)-p.Size:]
		} else {
			page = page[:p.Size]
		}
	}
	for _, k := range sorted { // what lies around the page; of an empty page, around the cursors
		if len(page) > 0 {
			next = next || order(k, page[len(page)-1]) > 0
			previous = previous || order(k, page[0]) < 0
		} else {
			next = next || p.Before != nil && order(k, *p.Before) >= 0
			previous = previous || p.After != nil && order(k, *p.After) <= 0
		}
	}
	return page, next, previous
}

func TestKeyText(t *testing.T) {
	k := projections.Key{Sequence: 12, Ordinal: 3}
	if back, err := projections.ParseKey(k.String()); err != nil || back != k {
		t.Errorf("%v, %v", back, err)
	}
	for _, bad := range []string{"", "1", "1.", ".1", "1.2.3", "01.2", "+1.2", "1.x", " 1.2", "-1.0", "1.-1", "1.2147483648"} {
		if k, err := projections.ParseKey(bad); err == nil {
			t.Errorf("ParseKey(%q) = %v", bad, k)
		}
	}
}
