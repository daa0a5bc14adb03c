package dataset

import (
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// BenchmarkRange makes the files of a random market with and without books, with about 1,000 and about 10 records a second. It reports the
// bytes and the time of a record.
func BenchmarkRange(b *testing.B) {
	o := projectiontest.NewOwner(b, 1)
	for len(o.Entries) < 1<<14 {
		o.Play(1000)
	}
	for _, market := range []struct {
		rate    int
		entries []record.Entry
	}{{1000, o.Entries[:1<<14]}, {10, slowly(o.Entries[:1<<14])}} {
		for _, with := range []bool{false, true} {
			b.Run(fmt.Sprintf("rate=%d/books=%v", market.rate, with), func(b *testing.B) {
				files := 0
				for b.Loop() {
					var books *Books
					if with {
						books = NewBooks()
					}
					r, err := NewRange("trading", 0, int64(len(market.entries)), books)
					must(b, err)
					for i := range market.entries {
						must(b, r.Add(&market.entries[i]))
					}
					made, err := r.Files()
					must(b, err)
					files = 0
					for _, f := range made {
						files += len(f.Content)
					}
					if with != slices.ContainsFunc(made, func(f File) bool { return f.Table == booksTable }) {
						b.Fatalf("books: %v", with)
					}
				}
				b.ReportMetric(float64(files)/float64(len(market.entries)), "B/record")
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(market.entries)), "ns/record")
			})
		}
	}
}

// BenchmarkDay makes the daily files of a random market with about 1,000 and about 10 records a second.
func BenchmarkDay(b *testing.B) {
	o := projectiontest.NewOwner(b, 1)
	for len(o.Entries) < 1<<14 {
		o.Play(1000)
	}
	for rate, entries := range map[int][]record.Entry{1000: o.Entries[:1<<14], 10: slowly(o.Entries[:1<<14])} {
		b.Run(fmt.Sprintf("rate=%d", rate), func(b *testing.B) {
			bytes := int64(0)
			for b.Loop() {
				bytes = 0
				d, err := NewDay(&entries[0], NewBooks(), func(string) (io.Writer, error) { return (*counter)(&bytes), nil })
				must(b, err)
				for i := range entries {
					if DateOf(entries[i].Record.Time) == d.Date() {
						must(b, d.Add(&entries[i]))
					}
				}
				must(b, d.Close())
			}
			b.ReportMetric(float64(bytes)/float64(len(entries)), "B/record")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(entries)), "ns/record")
		})
	}
}

// counter counts bytes.
type counter int64

func (c *counter) Write(b []byte) (int, error) {
	*c += counter(len(b))
	return len(b), nil
}
