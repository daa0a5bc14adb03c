package marketdata

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	gocloud "gocloud.dev/blob"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/singleflight"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/projections/dataset"
	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Bucket is where the files are. *blob.Store implements it.
type Bucket interface {
	List(ctx context.Context, prefix string) ([]*gocloud.ListObject, error)
	Read(ctx context.Context, key string, limit int64) ([]byte, error)
	Write(ctx context.Context, key string, content []byte, within time.Duration) error
	Create(ctx context.Context, key string, content []byte, within time.Duration) (created bool, err error)
	NewWriter(ctx context.Context, key string) (*blob.Writer, error)
	NewReaderAt(ctx context.Context, key string, offset int64) (*blob.Reader, error)
	Delete(ctx context.Context, keys ...string) error
}

var _ Bucket = (*blob.Store)(nil)

// Manifest names the files of a day and the records that they were made from.
type Manifest struct {
	Version int         `json:"version"`
	Date    string      `json:"date"`
	First   int64       `json:"first"` // sequence of the first record of the day
	Next    int64       `json:"next"`  // sequence after the last record of the day
	Prev    record.Hash `json:"prev"`  // hash of the record before the first
	Hash    record.Hash `json:"hash"`  // hash of the last record
	Files   []File      `json:"files"` // one for each table
}

// File is the file of a table.
type File struct {
	Table  string      `json:"table"`
	Bytes  int64       `json:"bytes"`
	SHA256 record.Hash `json:"sha256"` // of the bytes
	Rows   int64       `json:"rows"`
}

// File returns the file of a table, or nil.
func (m *Manifest) File(table string) *File {
	for i := range m.Files {
		if m.Files[i].Table == table {
			return &m.Files[i]
		}
	}
	return nil
}

// end returns the position of the last record of the day. Its offset is a guess.
func (m *Manifest) end() record.Position {
	return record.Position{Offset: m.Next - 1, Sequence: m.Next - 1, Hash: m.Hash}
}

// from says which records the files were made from.
func (m *Manifest) from() [4]any { return [4]any{m.First, m.Next, m.Prev, m.Hash} }

// The parts of keys.
const (
	daysFolder   = "days/"
	booksFolder  = "state/" // not that of the table books
	daySuffix    = ".json"
	booksSuffix  = ".books.zst"
	suffix       = ".parquet"
	maxManifest  = 1 << 16
	maxBooks     = 4 << 30
	writeWithin  = 5 * time.Minute
	hashInKey    = 8 // bytes
	lengthOfDate = len(time.DateOnly)

	concurrentReads = blob.Pending / 2 // of manifests
)

// Store is the folder of a journal in the bucket. It is safe for concurrent use.
type Store struct {
	bucket  Bucket
	folder  string
	now     func() time.Time
	loading singleflight.Group // of Recent

	mu     sync.Mutex
	known  map[string]read // by key; a manifest changes only if its files were lost and another build made them again
	recent recent
}

// read is a manifest that was read.
type read struct {
	stamp
	Manifest
}

// stamp identifies a version of a blob.
type stamp struct {
	modified time.Time
	size     int64
}

// NewStore returns the store of a journal in a bucket. All keys begin with prefix.
func NewStore(bucket Bucket, prefix string, journal scalar.ID) *Store {
	return &Store{bucket: bucket, folder: prefix + journal.String() + "/", now: time.Now, known: make(map[string]read)}
}

func (s *Store) dayKey(date string) string   { return s.folder + daysFolder + date + daySuffix }
func (s *Store) booksKey(date string) string { return s.folder + booksFolder + date + booksSuffix }

// fileKey returns the key of a file. Its name begins with the date.
func (s *Store) fileKey(date string, f *File) string {
	return fmt.Sprintf("%s%s/%s-%x%s", s.folder, f.Table, date, f.SHA256[:hashInKey], suffix)
}

// DateError says that a text is not a date.
type DateError struct{ Text string }

// Error names the text.
func (e *DateError) Error() string { return fmt.Sprintf("%q is not a date like 2026-11-26", e.Text) }

// ParseDate returns the beginning of a day in the form of dataset.DateOf.
func ParseDate(text string) (scalar.Time, error) {
	at, err := time.Parse(time.DateOnly, text)
	if err != nil || len(text) != lengthOfDate {
		return 0, &DateError{text}
	}
	return scalar.TimeOf(at), nil
}

// dates returns what the bucket has in a folder of blobs named by date, by date.
func (s *Store) dates(ctx context.Context, folder, suffix string) (map[string]stamp, error) {
	found, err := s.bucket.List(ctx, s.folder+folder)
	if err != nil {
		return nil, err
	}
	all := make(map[string]stamp)
	for _, o := range found {
		date := strings.TrimSuffix(strings.TrimPrefix(o.Key, s.folder+folder), suffix)
		if _, err := ParseDate(date); err == nil && strings.HasSuffix(o.Key, suffix) {
			all[date] = stamp{o.ModTime, o.Size}
		}
	}
	return all, nil
}

// damagedError says that a blob is not the manifest that its key promises. Its day counts as missing, and is made again.
type damagedError struct {
	key    string
	reason error
}

func (e *damagedError) Error() string {
	return fmt.Sprintf("marketdata: %s is not the manifest of its day: %v", e.key, e.reason)
}

func (e *damagedError) Unwrap() error { return e.reason }

func damaged(err error) bool {
	var d *damagedError
	return errors.As(err, &d)
}

// Days returns the manifests in the order of their dates, except damaged ones.
func (s *Store) Days(ctx context.Context) (all []Manifest, err error) {
	listed, err := s.dates(ctx, daysFolder, daySuffix)
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	reads, ctx := errgroup.WithContext(ctx)
	reads.SetLimit(concurrentReads)
	for date, stamp := range listed {
		reads.Go(func() error {
			m, err := s.day(ctx, date, stamp)
			if blob.Missing(err) || damaged(err) { // deleted since, or to be replaced
				return nil
			}
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, *m)
			return nil
		})
	}
	if err := reads.Wait(); err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(x, y Manifest) int { return strings.Compare(x.Date, y.Date) })
	return all, nil
}

// day returns the manifest of a day that the bucket has listed.
func (s *Store) day(ctx context.Context, date string, listed stamp) (*Manifest, error) {
	key := s.dayKey(date)
	s.mu.Lock()
	known, ok := s.known[key]
	s.mu.Unlock()
	if ok && known.stamp == listed {
		return &known.Manifest, nil
	}
	m, err := s.readDay(ctx, date)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known[key] = read{listed, *m}
	return m, nil
}

// readDay reads the manifest of a day.
func (s *Store) readDay(ctx context.Context, date string) (*Manifest, error) {
	b, err := s.bucket.Read(ctx, s.dayKey(date), maxManifest)
	if err != nil {
		return nil, err
	}
	m := new(Manifest)
	err = json.Unmarshal(b, m)
	if err == nil && (m.Date != date || m.First < 0 || m.Next <= m.First || m.Version < 1) {
		err = errors.New("its content is not that of its name")
	}
	if err != nil {
		return nil, &damagedError{s.dayKey(date), err}
	}
	return m, nil
}

// Files returns the files of all days as the bucket must have them.
func (s *Store) Files(ctx context.Context) (all []blob.Expected, err error) {
	days, err := s.Days(ctx)
	if err != nil {
		return nil, err
	}
	for i := range days {
		for _, f := range days[i].Files {
			all = append(all, blob.Expected{Key: s.fileKey(days[i].Date, &f), Size: f.Bytes,
				Sum: func(sum [sha256.Size]byte) bool { return f.SHA256 == sum }})
		}
	}
	return all, nil
}

// Open starts to read a file of a day from an offset on. The error of a missing file satisfies blob.Missing.
func (s *Store) Open(ctx context.Context, date string, f *File, offset int64) (io.ReadCloser, error) {
	return s.bucket.NewReaderAt(ctx, s.fileKey(date, f), offset)
}

// sizes returns the sizes of all files by key.
func (s *Store) sizes(ctx context.Context, namesBegin string) (map[string]int64, error) {
	all := make(map[string]int64)
	for _, table := range dataset.PublicTables() {
		found, err := s.bucket.List(ctx, s.folder+table+"/"+namesBegin)
		if err != nil {
			return nil, err
		}
		for _, o := range found {
			if !blob.Temporary(o.Key) {
				all[o.Key] = o.Size
			}
		}
	}
	return all, nil
}

// whole reports whether a day has a file for each table.
func (s *Store) whole(m *Manifest, sizes map[string]int64) bool {
	for _, table := range dataset.PublicTables() {
		f := m.File(table)
		if f == nil {
			return false
		}
		if size, ok := sizes[s.fileKey(m.Date, f)]; !ok || size != f.Bytes {
			return false
		}
	}
	return true
}

// putFile writes a file. A file with its key has the same bytes, unless it was damaged.
func (s *Store) putFile(ctx context.Context, date string, f *File, content io.Reader) error {
	w, err := s.bucket.NewWriter(ctx, s.fileKey(date, f))
	if err != nil {
		return err
	}
	defer w.Abandon()
	if _, err := io.Copy(struct{ io.Writer }{w}, content); err != nil {
		return err
	}
	return w.Commit()
}

// putDay publishes a day after its files are in the bucket. It returns the published manifest, which is that of another maker if that was
// faster. The error is a *record.DivergedError if the bucket has the day of another log.
func (s *Store) putDay(ctx context.Context, m *Manifest) (*Manifest, error) {
	content, err := json.Marshal(m, json.Deterministic(true))
	if err != nil {
		return nil, err
	}
	created, err := s.bucket.Create(ctx, s.dayKey(m.Date), content, writeWithin)
	if err != nil || created {
		return m, err
	}
	there, err := s.readDay(ctx, m.Date)
	if damaged(err) {
		return m, s.bucket.Write(ctx, s.dayKey(m.Date), content, writeWithin)
	}
	if err != nil {
		return nil, err
	}
	if there.from() != m.from() {
		return nil, &record.DivergedError{Journal: "trading", Have: there.end(), Found: m.end(), Reason: "the files of " + m.Date + " were made from other records"}
	}
	if slices.Equal(there.Files, m.Files) {
		return there, nil
	}
	sizes, err := s.sizes(ctx, m.Date)
	if err != nil || s.whole(there, sizes) {
		return there, err
	}
	return m, s.bucket.Write(ctx, s.dayKey(m.Date), content, writeWithin) // its files are lost, or it lacks a table
}

// sweep deletes the files of a day that its manifest does not name.
func (s *Store) sweep(ctx context.Context, m *Manifest) error {
	sizes, err := s.sizes(ctx, m.Date)
	if err != nil {
		return err
	}
	for i := range m.Files {
		delete(sizes, s.fileKey(m.Date, &m.Files[i]))
	}
	return s.bucket.Delete(ctx, keysOf(sizes)...)
}

// drop deletes the days before a date: the files, the saved books, and the manifests. A manifest goes last: without it, nothing would name
// the files. The last day stays, because a maker continues after it.
func (s *Store) drop(ctx context.Context, before string) (days int, err error) {
	listed, err := s.dates(ctx, daysFolder, daySuffix)
	if err != nil {
		return 0, err
	}
	dates := slices.Sorted(maps.Keys(listed))
	for _, date := range dates[:max(0, len(dates)-1)] {
		if date >= before {
			break
		}
		sizes, err := s.sizes(ctx, date)
		if err == nil {
			err = s.bucket.Delete(ctx, append(keysOf(sizes), s.booksKey(date), s.dayKey(date))...)
		}
		if err != nil {
			return days, err
		}
		days++
	}
	return days, nil
}

// sweepAbandoned deletes what killed makers have left of unfinished blobs.
func (s *Store) sweepAbandoned(ctx context.Context) error {
	found, err := s.bucket.List(ctx, s.folder)
	if err != nil {
		return err
	}
	var keys []string
	for _, o := range found {
		if blob.Abandoned(o) {
			keys = append(keys, o.Key)
		}
	}
	return s.bucket.Delete(ctx, keys...)
}

func keysOf(sizes map[string]int64) (keys []string) {
	for key := range sizes {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
