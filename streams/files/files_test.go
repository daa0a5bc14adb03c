package files_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/files"
	"github.com/perpetua-exchange/perpetua/streams/seal"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

var (
	anna = owner.Ref{Type: owner.PersonType, ID: scalar.ID{1}}
	acme = owner.Ref{Type: owner.CorporateType, ID: scalar.ID{2}}
)

// place is a store in a folder.
type place struct {
	*files.Store
	folder string
	owners *seal.Owners
}

func open(t *testing.T) place {
	t.Helper()
	box, err := seal.New(make([]byte, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	owners, err := seal.OpenOwners(t.Context(), "mem://", box)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { owners.Close() })
	for _, o := range []owner.Ref{anna, acme} {
		if err := owners.Create(t.Context(), o.String()); err != nil {
			t.Fatal(err)
		}
	}
	folder := t.TempDir()
	bucket, err := blob.Open(t.Context(), blob.URLOf(folder))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { bucket.Close() })
	return place{files.New(bucket, owners, ""), folder, owners}
}

// lies returns the paths of all files in the folder.
func (p place) lies(t *testing.T) (all []string) {
	t.Helper()
	err := filepath.WalkDir(p.folder, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			all = append(all, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func (p place) keep(t *testing.T, of owner.Ref, id byte, content []byte) files.File {
	t.Helper()
	return p.keepAs(t, of, scalar.ID{15: id}, content)
}

func (p place) keepAs(t *testing.T, of owner.Ref, id scalar.ID, content []byte) files.File {
	t.Helper()
	d, err := p.Create(t.Context(), of, id)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Write(content); err != nil {
		t.Fatal(err)
	}
	f, err := d.Keep()
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func (p place) read(t *testing.T, f files.File) ([]byte, error) {
	t.Helper()
	r, err := p.Open(t.Context(), f)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// marked is content that would be recognized wherever it lay in the clear.
var marked = bytes.Repeat([]byte("plain as can be "), 20_000)

func TestAFileIsKeptSealed(t *testing.T) {
	p := open(t)
	f := p.keep(t, anna, 1, marked)
	if f.Size != int64(len(marked)) || len(f.SHA256) != 32 || f.Ref != anna {
		t.Errorf("%+v", f)
	}
	paths := p.lies(t)
	if len(paths) != 1 {
		t.Fatalf("%q", paths)
	}
	sealed, err := os.ReadFile(paths[0])
	if err != nil || bytes.Contains(sealed, []byte("plain as")) {
		t.Errorf("it lies there in the clear (%v)", err)
	}
	if got, err := p.read(t, f); err != nil || !bytes.Equal(got, marked) {
		t.Errorf("%d bytes are read, %v", len(got), err)
	}
	if err := p.owners.Destroy(t.Context(), anna.String()); err != nil {
		t.Fatal(err)
	}
	if _, err := p.read(t, f); !errors.Is(err, seal.ErrDestroyed) {
		t.Errorf("without its key it is read: %v", err)
	}
}

// TestAnotherFileIsNotRead puts what was sealed elsewhere, or is not what was kept, in a file's place.
func TestAnotherFileIsNotRead(t *testing.T) {
	p := open(t)
	f, other := p.keep(t, anna, 1, marked), p.keep(t, anna, 2, marked)
	path := filepath.Join(p.folder, filepath.FromSlash(f.Source))
	sealed, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := os.ReadFile(filepath.Join(p.folder, filepath.FromSlash(other.Source)))
	if err != nil {
		t.Fatal(err)
	}
	// The same file, sealed once more: every part of it opens, and only the hash tells.
	again := p.keep(t, anna, 1, append(bytes.Clone(marked[:len(marked)-1]), 'X'))
	anew, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(sealed)
	flipped[len(flipped)/2] ^= 1
	for name, test := range map[string][]byte{"another document's": theirs, "sealed anew": anew, "one bit": flipped, "cut": sealed[:len(sealed)/2],
		"longer": append(bytes.Clone(sealed), 0), "empty": nil} {
		if err := os.WriteFile(path, test, 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := p.read(t, f)
		if !errors.Is(err, files.ErrChanged) && !errors.Is(err, seal.ErrDamaged) || len(got) == len(marked) {
			t.Errorf("%s: %d bytes are read, %v", name, len(got), err)
		}
	}
	if err := os.WriteFile(path, anew, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := p.read(t, again); err != nil {
		t.Errorf("what was kept last: %v", err)
	}
}

func TestWhatIsGivenUpLeavesNothing(t *testing.T) {
	p := open(t)
	for name, end := range map[string]func(*files.Draft, context.CancelFunc) error{
		"discarded": func(d *files.Draft, _ context.CancelFunc) error { return d.Discard(t.Context()) },
		"the client gone": func(d *files.Draft, cancel context.CancelFunc) error {
			cancel()
			if _, err := d.Keep(); err == nil {
				return errors.New("it was kept")
			}
			return nil
		},
		"discarded when it was kept": func(d *files.Draft, _ context.CancelFunc) error {
			_, err := d.Keep()
			return errors.Join(err, d.Discard(t.Context()))
		},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		d, err := p.Create(ctx, anna, scalar.ID{15: 1})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.Write(marked); err != nil {
			t.Fatal(err)
		}
		if len(p.lies(t)) != 1 {
			t.Errorf("%s: nothing was written", name)
		}
		if err := end(d, cancel); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if left := p.lies(t); len(left) > 0 {
			t.Errorf("%s: %q is left", name, left)
		}
		cancel()
	}
}

// told is a journal that knows documents, some of them only once it has settled.
type told struct {
	now, later []scalar.ID
	gone       []scalar.ID // documents that it has and does not need
	settled    int
}

func (j *told) Settle(context.Context) error {
	j.settled++
	j.now, j.later = append(j.now, j.later...), nil
	return nil
}
func (j *told) Needs(id scalar.ID, _ string) bool { return slices.Contains(j.now, id) }

func (j *told) Knows(id scalar.ID) bool { return slices.Contains(j.gone, id) }
func (*told) Since() (time.Time, bool)  { return time.Unix(1_000_000_000, 0), true }

// since is a journal that needs no document. It knows its first owner, if it has one, once it has settled, as at the start of a node.
type since struct {
	told
	at  time.Time
	any bool
}

func (j *since) Since() (time.Time, bool) { return j.at, j.any && j.settled > 0 }

// TestASweepKeepsFilesOfAnotherLog: what was uploaded before the first owner of this log was registered is another venue's, or of
// a log that was lost and may be restored.
func TestASweepKeepsFilesOfAnotherLog(t *testing.T) {
	p := open(t)
	at := time.UnixMilli(1_800_000_000_000)
	var id scalar.ID
	binary.BigEndian.PutUint64(id[:], uint64(at.UnixMilli())<<16|0x7000)
	for _, c := range []struct {
		at      time.Time
		any     bool
		gone    []scalar.ID
		removed int
	}{
		{time.Time{}, false, nil, 0}, {at.Add(time.Millisecond), true, nil, 0}, {at, true, nil, 1},
		{at.Add(time.Millisecond), true, []scalar.ID{id}, 1}, // the clock of the upload was behind
	} {
		p.keepAs(t, anna, id, marked)
		s := files.Sweeper{Store: p.Store, Journal: &since{told{gone: c.gone}, c.at, c.any}, Age: time.Nanosecond}
		if n, err := s.Sweep(t.Context()); n != c.removed || err != nil {
			t.Errorf("first upload at %v, %v: %d files were removed, %v", c.at, c.any, n, err)
		}
	}
}

func TestASweepRemovesWhatNobodyNeeds(t *testing.T) {
	p := open(t)
	known, underWay, orphan := p.keep(t, anna, 1, marked), p.keep(t, anna, 2, marked), p.keep(t, acme, 3, marked)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if d, err := p.Create(ctx, acme, scalar.ID{15: 4}); err != nil { // and never ended, as that of a process that was killed
		t.Fatal(err)
	} else if _, err := d.Write(marked); err != nil {
		t.Fatal(err)
	}
	foreign := filepath.Join(p.folder, "documents", "03", "notes")
	if err := os.WriteFile(foreign, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	j := &told{now: []scalar.ID{known.ID}, later: []scalar.ID{underWay.ID}}
	young := files.Sweeper{Store: p.Store, Journal: j, Age: time.Hour}
	if n, err := young.Sweep(t.Context()); n != 0 || err != nil || j.settled > 0 {
		t.Errorf("%d young files were removed (%v), and the journal was asked %d times", n, err, j.settled)
	}
	late := files.Sweeper{Store: p.Store, Journal: j, Age: time.Nanosecond, Now: func(context.Context) (time.Time, error) { return time.Now().Add(-time.Hour), nil }}
	if n, err := late.Sweep(t.Context()); n != 0 || err != nil {
		t.Errorf("%d files were removed that are young by the other clock, %v", n, err)
	}
	unknown := errors.New("no clock")
	late.Now = func(context.Context) (time.Time, error) { return time.Time{}, unknown }
	if n, err := late.Sweep(t.Context()); n != 0 || !errors.Is(err, unknown) {
		t.Errorf("%d files were removed by an unknown clock, %v", n, err)
	}
	old := files.Sweeper{Store: p.Store, Journal: j, Age: time.Nanosecond}
	if n, err := old.Sweep(t.Context()); n != 2 || err != nil {
		t.Errorf("%d files were removed, %v", n, err)
	}
	for _, f := range []files.File{known, underWay} {
		if _, err := p.read(t, f); err != nil {
			t.Errorf("%s: %v", f.Source, err)
		}
	}
	if _, err := p.read(t, orphan); !blob.Missing(err) {
		t.Errorf("what no record names is still there: %v", err)
	}
	if left := p.lies(t); len(left) != 3 || !slices.Contains(left, foreign) {
		t.Errorf("%q is left", left)
	}
}

// unowned is a journal without an owner, up to the last of some sweeps.
type unowned struct {
	told
	sweeps int
	end    func()
}

func (j *unowned) Settle(ctx context.Context) error {
	if j.sweeps--; j.sweeps == 0 {
		j.end()
		return j.told.Settle(ctx)
	}
	return fmt.Errorf("it does not settle: %w", &submit.NotAcceptedError{Reason: "the journal has no owner at the moment"})
}

// TestAStartWithoutAnOwner is nothing to warn of. A journal that has none later is.
func TestAStartWithoutAnOwner(t *testing.T) {
	for sweeps, want := range map[int]int{2: 0, 3: 1, 4: 2} {
		p := open(t)
		p.keep(t, anna, 1, marked)
		var said bytes.Buffer
		ctx, cancel := context.WithCancel(t.Context())
		s := files.Sweeper{Store: p.Store, Journal: &unowned{sweeps: sweeps, end: cancel}, Logger: slog.New(slog.NewTextHandler(&said, nil)),
			Age: time.Nanosecond, Again: time.Millisecond}
		if err := s.Run(ctx); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if got := strings.Count(said.String(), "level=WARN"); got != want {
			t.Errorf("%d sweeps: %d warnings, want %d: %s", sweeps, got, want, said.String())
		}
	}
}

// TestASweepThatMayNot removes nothing: the files may be those of the venue that this one is a copy of.
func TestASweepThatMayNot(t *testing.T) {
	p := open(t)
	orphan := p.keep(t, acme, 3, marked)
	may := seal.ErrFenced
	s := files.Sweeper{Store: p.Store, Journal: new(told), Age: time.Nanosecond, May: func(context.Context) error { return may }}
	if n, err := s.Sweep(t.Context()); n != 0 || !errors.Is(err, may) {
		t.Errorf("%d files were removed, %v", n, err)
	}
	if _, err := p.read(t, orphan); err != nil {
		t.Errorf("the file: %v", err)
	}
	may = nil
	if n, err := s.Sweep(t.Context()); n != 1 || err != nil {
		t.Errorf("%d files were removed once it may, %v", n, err)
	}
}
