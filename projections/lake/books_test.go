package lake

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/streams/archive"
)

// TestBooksContinue fills a catalog in two parts. Between them it loses, damages, or replaces the saved books. The files are those of one run.
func TestBooksContinue(t *testing.T) {
	v := newVenue(t)
	v.seal(t, "trading", 3*ranged)
	must(t, v.filler("trading", nil).Fill(t.Context()))
	want := v.content(t)
	saved := filepath.Join(v.dir, "lake", "books", "*")
	last, err := filepath.Glob(saved)
	must(t, err)
	if len(last) != 1 || !strings.Contains(last[0], fmt.Sprint(3*ranged)) {
		t.Fatalf("the saved books are %v", last)
	}
	other, err := os.ReadFile(last[0])
	must(t, err)
	for name, content := range map[string][]byte{"kept": nil, "lost": {}, "damaged": []byte("damaged"), "of another range": other} {
		t.Run(name, func(t *testing.T) {
			v.empty(t)
			v.fillTo(t, v.filler("trading", nil), 2*ranged)
			now, err := filepath.Glob(saved)
			must(t, err)
			if len(now) != 1 {
				t.Fatalf("the saved books are %v", now)
			}
			if content != nil {
				must(t, os.Remove(now[0]))
			}
			if len(content) > 0 {
				must(t, os.WriteFile(now[0], content, 0o600))
			}
			must(t, v.filler("trading", nil).Fill(t.Context()))
			if v.content(t) != want {
				t.Error("the catalog or a file differs")
			}
		})
	}
}

// watched is a bucket that counts what is read from the archive, and fails for some keys.
type watched struct {
	archive.Store
	reads []string               // keys of objects of the archive
	fails func(key string) error // nil for none
}

func (w *watched) Read(ctx context.Context, key string, limit int64) ([]byte, error) {
	if w.fails != nil && w.fails(key) != nil {
		return nil, w.fails(key)
	}
	if strings.HasPrefix(key, archive.Folder) {
		w.reads = append(w.reads, key)
	}
	return w.Store.Read(ctx, key, limit)
}

func (w *watched) Write(ctx context.Context, key string, content []byte, within time.Duration) error {
	if w.fails != nil && w.fails(key) != nil {
		return w.fails(key)
	}
	return w.Store.Write(ctx, key, content, within)
}

// watch returns a filler and its bucket. It saves books after every two ranges that it reads for them.
func (v *venue) watch(t testing.TB, fails func(key string) error) (*Filler, *watched) {
	t.Helper()
	w := &watched{Store: v.store, fails: fails}
	return v.filler("trading", func(c *FillerConfig) { c.Archive.Store, c.SaveEvery = w, 2 }), w
}

// objectOf returns the key of the object with a range of the archive.
func (v *venue) objectOf(t testing.TB, number int) string {
	t.Helper()
	a, err := archive.Open(t.Context(), v.archiveConfig("trading"))
	must(t, err)
	return a.Sealed()[number].Object
}

func (v *venue) files(t testing.TB, table string) int {
	t.Helper()
	return len(v.texts(t, "SELECT f.path FROM lake.ducklake_data_file f JOIN lake.ducklake_table t USING (table_id) WHERE table_name = '"+table+"'"))
}

// TestAnEarlierBuildAddsARange has an earlier build, which has no books, add a range between two of this build. The filler that was away and
// the one that was not read only that range again, and the files are those of one run.
func TestAnEarlierBuildAddsARange(t *testing.T) {
	for _, away := range []bool{false, true} {
		v := newVenue(t)
		v.seal(t, "trading", 4*ranged)
		must(t, v.filler("trading", nil).Fill(t.Context()))
		want := v.content(t)
		v.empty(t)
		f, w := v.watch(t, nil)
		v.fillTo(t, f, 2*ranged)
		key := f.booksKey(2 * ranged)
		saved, err := v.store.Read(t.Context(), key, maxFile)
		must(t, err)
		v.fillTo(t, v.filler("trading", nil), 3*ranged)
		must(t, v.store.Delete(t.Context(), f.booksKey(3*ranged)))
		must(t, v.store.Write(t.Context(), key, saved, time.Minute))
		if away {
			f, w = v.watch(t, nil)
		}
		w.reads = nil
		must(t, f.Fill(t.Context()))
		if v.content(t) != want {
			t.Error("the catalog or a file differs")
		}
		for number, again := range map[int]bool{0: false, 2: true, 3: true} { // Records also reads the range before
			if slices.Contains(w.reads, v.objectOf(t, number)) != again {
				t.Errorf("away %v: the range %d is read: %v", away, number, !again)
			}
		}
	}
}

// TestReadingForTheBooksContinues interrupts a filler that reads the archive from its first record on. The next one continues.
func TestReadingForTheBooksContinues(t *testing.T) {
	v := newVenue(t)
	v.seal(t, "trading", 6*ranged)
	must(t, v.filler("trading", nil).Fill(t.Context()))
	want := v.content(t)
	v.empty(t)
	v.fillTo(t, v.filler("trading", nil), 5*ranged)
	must(t, os.RemoveAll(filepath.Join(v.dir, "lake", "books")))
	third := v.objectOf(t, 3)
	f, _ := v.watch(t, func(key string) error {
		if key == third {
			return errCrash
		}
		return nil
	})
	if err := f.Fill(t.Context()); !errors.Is(err, errCrash) {
		t.Fatalf("the filler ended with %v", err)
	}
	f, w := v.watch(t, nil)
	must(t, f.Fill(t.Context()))
	if v.content(t) != want {
		t.Error("the catalog or a file differs")
	}
	for number, again := range map[int]bool{0: false, 2: true, 5: true} {
		if slices.Contains(w.reads, v.objectOf(t, number)) != again {
			t.Errorf("the range %d is read: %v", number, !again)
		}
	}
	if saved, err := filepath.Glob(filepath.Join(v.dir, "lake", "books", "*")); err != nil || len(saved) != 1 {
		t.Errorf("the saved books are %v (%v)", saved, err)
	}
}

// TestBooksFailAlone damages the archive before the range to add, and loses the saved books, or refuses to save any. After some tries the
// other tables get the range, and later ones.
func TestBooksFailAlone(t *testing.T) {
	for name, lost := range map[string]bool{"not read": true, "not saved": false} {
		t.Run(name, func(t *testing.T) {
			v := newVenue(t)
			v.seal(t, "trading", 5*ranged)
			v.fillTo(t, v.filler("trading", nil), 2*ranged)
			trades, books := v.files(t, "orders"), v.files(t, "books")
			if lost {
				must(t, os.RemoveAll(filepath.Join(v.dir, "lake", "books")))
				must(t, v.store.Delete(t.Context(), v.objectOf(t, 0)))
			}
			f, _ := v.watch(t, func(key string) error {
				if !lost && strings.HasPrefix(key, "lake/books/") && !strings.Contains(key, fmt.Sprint(2*ranged)) {
					return errCrash
				}
				return nil
			})
			failures := 0
			for ; f.Fill(t.Context()) != nil && failures < 10; failures++ {
			}
			wantFailures, wantBooks := 0, books+3
			if lost {
				wantFailures, wantBooks = booksTries-1, books
			}
			if got := v.files(t, "orders"); failures != wantFailures || got != trades+3 || v.files(t, "books") != wantBooks {
				t.Errorf("after %d failures, there are %d files of orders, and %d of books", failures, got, v.files(t, "books"))
			}
		})
	}
}

// TestAnotherNodeIsFaster has another node add the range for which a filler reads the archive. It stops to read.
func TestAnotherNodeIsFaster(t *testing.T) {
	v := newVenue(t)
	v.seal(t, "trading", 4*ranged)
	v.fillTo(t, v.filler("trading", nil), 3*ranged)
	f, w := v.watch(t, nil)
	a, err := archive.Open(t.Context(), f.cfg.Archive)
	must(t, err)
	w.reads = nil
	must(t, os.RemoveAll(filepath.Join(v.dir, "lake", "books")))
	must(t, f.add(t.Context(), a, &a.Sealed()[2]))
	if len(w.reads) > 0 || f.Status().Failures > 0 {
		t.Errorf("it reads %v", w.reads)
	}
}
