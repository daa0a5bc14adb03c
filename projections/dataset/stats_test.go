package dataset

import (
	"bytes"
	"cmp"
	"fmt"
	"math/big"
	"testing"

	"github.com/parquet-go/parquet-go"
	"pgregory.net/rapid"

	"github.com/perpetua-exchange/perpetua/streams/record"
)

// filesOf returns the files of a range with all entries.
func filesOf(t testing.TB, entries []record.Entry) []File {
	t.Helper()
	r, err := NewRange("trading", 0, int64(len(entries)), NewBooks())
	must(t, err)
	for i := range entries {
		must(t, r.Add(&entries[i]))
	}
	files, err := r.Files()
	must(t, err)
	return files
}

// texts returns the values of a column of a file in the order of the rows, in text. NULL is nil.
func texts(t testing.TB, f *parquet.File, column int, kind string) (all []*string) {
	t.Helper()
	for _, g := range f.RowGroups() {
		rows := g.Rows()
		buffer := make([]parquet.Row, 1)
		for {
			n, _ := rows.ReadRows(buffer)
			if n == 0 {
				break
			}
			if v := buffer[0][column]; v.IsNull() {
				all = append(all, nil)
			} else {
				s := textOf(kind, v)
				all = append(all, &s)
			}
		}
		must(t, rows.Close())
	}
	return all
}

// inOrder compares two values of a column by their text.
func inOrder(kind, x, y string) int {
	if kind == intType || kind == decimalType {
		a, _ := new(big.Rat).SetString(x)
		b, _ := new(big.Rat).SetString(y)
		return a.Cmp(b)
	}
	return cmp.Compare(x, y)
}

// TestStatistics compares the statistics of the files of a random market with their rows. The metadata of a file has no bounds of numbers.
func TestStatistics(t *testing.T) {
	negative, nulls := 0, 0
	for _, file := range filesOf(t, played(t, 5)) {
		f, err := parquet.OpenFile(bytes.NewReader(file.Content), int64(len(file.Content)))
		must(t, err)
		for i, c := range file.Columns {
			what := file.Table + "." + c.Name
			var low, high *string
			values := int64(0)
			for _, s := range texts(t, f, i, c.Type) {
				if s == nil {
					nulls++
					continue
				}
				values++
				if low == nil || inOrder(c.Type, *s, *low) < 0 {
					low = s
				}
				if high == nil || inOrder(c.Type, *s, *high) > 0 {
					high = s
				}
			}
			if c.Values != values || c.Values+c.Nulls != file.Rows || said(c.Min) != said(low) || said(c.Max) != said(high) {
				t.Errorf("%s has %d values from %s to %s in %d rows, and the statistics have %d and %d NULLs from %s to %s", what, values, said(low), said(high),
					file.Rows, c.Values, c.Nulls, said(c.Min), said(c.Max))
			}
			if c.Type != decimalType {
				continue
			}
			if low != nil && (*low)[0] == '-' && (*high)[0] != '-' {
				negative++
			}
			for _, g := range f.Metadata().RowGroups {
				if s := g.Columns[i].MetaData.Statistics; len(s.MinValue)+len(s.MaxValue)+len(s.Min)+len(s.Max) > 0 {
					t.Errorf("the metadata has bounds of the numbers %s", what)
				}
			}
		}
	}
	if negative == 0 || nulls == 0 {
		t.Errorf("the market has %d columns with numbers of both signs, and %d NULLs", negative, nulls)
	}
}

func said(s *string) string {
	if s == nil {
		return "NULL"
	}
	return *s
}

// TestWiden joins the statistics of two files in both orders.
func TestWiden(t *testing.T) {
	for _, c := range []struct{ kind, a, b, c, d, low, high string }{
		{intType, "2", "9", "10", "11", "2", "11"},
		{intType, "-9", "-2", "-10", "3", "-10", "3"},
		{decimalType, "-0.500000000000000000", "2.000000000000000000", "-10.000000000000000000", "1.000000000000000000", "-10.000000000000000000", "2.000000000000000000"},
		{textType, "10", "B", "9", "a", "10", "a"},
		{textType, "", "", "", "", "", ""},
		{boolType, "0", "0", "1", "1", "0", "1"},
		{timeType, "2026-01-02 00:00:00.000000+00", "2026-01-03 00:00:00.000000+00", "2025-12-31 23:59:59.999999+00", "2026-01-01 00:00:00.000000+00",
			"2025-12-31 23:59:59.999999+00", "2026-01-03 00:00:00.000000+00"},
	} {
		one := Stats{Column: Column{Type: c.kind}, Values: 2, Nulls: 1, Bytes: 8, Min: &c.a, Max: &c.b}
		two := Stats{Column: Column{Type: c.kind}, Values: 3, Bytes: 9, Min: &c.c, Max: &c.d}
		for _, pair := range [][2]Stats{{one, two}, {two, one}} {
			must(t, pair[0].Widen(&pair[1]))
			if got := pair[0]; *got.Min != c.low || *got.Max != c.high || got.Values != 5 || got.Nulls != 1 || got.Bytes != 17 {
				t.Errorf("%s: from %s to %s, not from %s to %s: %+v", c.kind, *got.Min, *got.Max, c.low, c.high, got)
			}
		}
		empty := Stats{Column: Column{Type: c.kind}, Nulls: 4}
		must(t, empty.Widen(&one))
		must(t, one.Widen(&Stats{Nulls: 4}))
		if said(empty.Min) != c.a || said(one.Max) != c.b {
			t.Errorf("%s: with a file that has only NULLs from %s to %s", c.kind, said(empty.Min), said(one.Max))
		}
	}
	word, number := "x", "1"
	s := Stats{Column: Column{Type: intType}, Min: &number, Max: &number}
	if err := s.Widen(&Stats{Min: &word, Max: &word}); err == nil {
		t.Error("a word is a bound of numbers")
	}
}

// TestNumbersInText compares the order and the text of random decimals with those of big integers.
func TestNumbersInText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw := rapid.SliceOfN(rapid.Byte(), 16, 16)
		x, y := raw.Draw(t, "x"), raw.Draw(t, "y")
		b := bounds{kind: decimalType}
		if got, want := b.less(parquet.FixedLenByteArrayValue(x), parquet.FixedLenByteArrayValue(y)), signed(x).Cmp(signed(y)) < 0; got != want {
			t.Errorf("%x < %x is %v", x, y, got)
		}
		text := number(x).String()
		back, ok := new(big.Rat).SetString(text)
		if !ok || back.Mul(back, new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(decimals), nil))).Cmp(new(big.Rat).SetInt(signed(x))) != 0 {
			t.Errorf("%x is %s", x, text)
		}
	})
}

// signed returns a number in two's complement.
func signed(b []byte) *big.Int {
	n := new(big.Int)
	for i := range 8 * len(b) {
		if b[len(b)-1-i/8]>>(i%8)&1 == 0 {
			continue
		}
		bit := new(big.Int).Lsh(big.NewInt(1), uint(i))
		if i == 8*len(b)-1 {
			bit.Neg(bit)
		}
		n.Add(n, bit)
	}
	return n
}

// TestRange refuses a range that does not begin at a multiple of its size, and records that are missing, doubled, or too many.
func TestRange(t *testing.T) {
	entries := played(t, 6)
	for _, c := range []struct {
		journal     string
		first, size int64
		add         []int
		added, made bool
	}{
		{"trading", 0, 4, []int{0, 1, 2, 3}, true, true},
		{"trading", 0, 4, []int{0, 1, 2}, true, false},
		{"trading", 0, 4, []int{0, 2}, false, false},
		{"trading", 0, 4, []int{0, 0}, false, false},
		{"trading", 0, 4, []int{0, 1, 2, 3, 4}, false, true},
		{"trading", 4, 4, []int{0}, false, false},
	} {
		t.Run(fmt.Sprint(c.first, c.add), func(t *testing.T) {
			r, err := NewRange(c.journal, c.first, c.size, nil)
			must(t, err)
			for i, n := range c.add {
				if err = r.Add(&entries[n]); err != nil && i < len(c.add)-1 {
					t.Fatal(err)
				}
			}
			if (err == nil) != c.added {
				t.Errorf("the last record: %v", err)
			}
			if _, err := r.Files(); (err == nil) != c.made {
				t.Errorf("the files: %v", err)
			}
		})
	}
	for _, c := range []struct {
		journal     string
		first, size int64
	}{{"identity", 0, 4}, {"trading", 0, 0}, {"trading", -4, 4}, {"trading", 3, 4}} {
		if _, err := NewRange(c.journal, c.first, c.size, nil); err == nil {
			t.Errorf("there is a range of %d records from %d of %s", c.size, c.first, c.journal)
		}
	}
}
