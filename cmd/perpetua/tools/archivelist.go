package tools

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/streams/archive"
	"github.com/perpetua-exchange/perpetua/streams/blob"
)

// listed is the JSON output of a list of archives for one journal.
type listed struct {
	Journal  string  `json:"journal"`
	Ranges   int64   `json:"ranges"`              // full ones
	Records  int64   `json:"records"`             // valid ones, with those of the tail
	Skipped  int64   `json:"skipped"`             // records that readers skip as invalid
	Values   int64   `json:"value_bytes"`         // of all records
	Bytes    int64   `json:"archive_bytes"`       // of the objects
	Percent  float64 `json:"percent"`             // Bytes of Values
	Newest   *newest `json:"newest,omitempty"`    // full range
	TailFrom int64   `json:"tail_from"`           // sequence of the first record after the full ranges
	Tail     int64   `json:"tail"`                // valid records of the tail
	TailAt   string  `json:"tail_time,omitempty"` // time of the last record of the tail
	Locks    *locks  `json:"locks,omitempty"`     // of a store that can lock objects
}

// locks says how the objects and the manifests of full ranges are locked.
type locks struct {
	Blobs int    `json:"objects"`         // with the manifests
	Open  int    `json:"unlocked"`        // of them
	Until string `json:"until,omitempty"` // the first end of a lock
	Mode  string `json:"mode,omitempty"`  // of that lock; "" if a policy of the bucket is the reason
}

// findLocks returns nil if the archive has no full ranges, or if it is not in an object store.
func findLocks(ctx context.Context, at string, c archive.Config) (*locks, error) {
	if !blob.TellsLocks(at) {
		return nil, nil
	}
	found, err := archive.FindLocks(ctx, c)
	if err != nil || found.Blobs == 0 {
		return nil, err
	}
	l := &locks{Blobs: found.Blobs, Open: found.Open, Mode: string(found.Mode)}
	if !found.Until.IsZero() {
		l.Until = found.Until.UTC().Format(time.RFC3339)
	}
	return l, nil
}

// String describes the locks for humans.
func (l *locks) String() string {
	locked, mode := l.Blobs-l.Open, l.Mode
	if locked == 0 {
		return fmt.Sprintf("none of %d objects of full ranges is locked", l.Blobs)
	}
	if mode == "" {
		mode = "by a policy of the bucket"
	}
	return fmt.Sprintf("%d of %d objects of full ranges are locked, until %s or later (%s)", locked, l.Blobs, l.Until, mode)
}

// newest is the newest manifest of an archive.
type newest struct {
	Manifest string `json:"manifest"` // key in the bucket
	Hash     string `json:"hash"`     // SHA-256 of the manifest
	Sequence int64  `json:"sequence"` // of the last record
	Record   string `json:"record"`   // hash of the last record
	Time     string `json:"time"`     // of the last record
	Bytes    int64  `json:"bytes"`    // of the object
}

// listArchives prints what the archives of the journals hold. It reads the manifests and verifies their chain.
func (r *archiveRequest) listArchives(ctx context.Context, std settings.IO) error {
	config, done, err := r.open(ctx, settings.Existing(r.at))
	if err != nil {
		return err
	}
	defer done()
	return each(r, std, func(j journals.Journal) (listed, error) {
		a, err := archive.Open(ctx, config(j.Name()))
		if err != nil {
			return listed{}, err
		}
		l := listArchive(j.Name(), a)
		l.Locks, err = findLocks(ctx, r.at, config(j.Name()))
		return l, err
	})
}

func listArchive(name string, a *archive.Archive) listed {
	l := listed{Journal: name, Ranges: int64(len(a.Sealed()))}
	add := func(m *archive.Manifest) {
		l.Records, l.Skipped, l.Values, l.Bytes = l.Records+m.Records, l.Skipped+m.Skipped, l.Values+m.Values, l.Bytes+m.Bytes
	}
	for _, s := range a.Sealed() {
		add(&s.Manifest)
		l.TailFrom = s.Base.Sequence
		l.Newest = &newest{Manifest: s.Key, Hash: s.Signed.String(), Sequence: s.Base.Sequence - 1, Record: s.Base.Prev.String(), Time: s.LastTime.String(), Bytes: s.Bytes}
	}
	if t := a.Tail(); t != nil {
		add(&t.Manifest)
		l.Tail, l.TailAt = t.Records, t.LastTime.String()
	}
	l.Percent = 100 * float64(l.Bytes) / float64(max(l.Values, 1))
	return l
}

func (l listed) print(out io.Writer) {
	if l.Records == 0 {
		fmt.Fprintf(out, "%s: the archive is empty\n", l.Journal)
		return
	}
	fmt.Fprintf(out, "%s: %d records and %d that readers skip; %d bytes for %d bytes of values (%.2f %%)\n", l.Journal, l.Records, l.Skipped, l.Bytes, l.Values, l.Percent)
	if n := l.Newest; n != nil {
		fmt.Fprintf(out, "  %d ranges up to record %d of %s, hash %s\n  newest manifest %s, hash %s\n", l.Ranges, n.Sequence, n.Time, n.Record, n.Manifest, n.Hash)
	}
	if l.Tail > 0 {
		fmt.Fprintf(out, "  tail: %d records from %d on, the last of %s\n", l.Tail, l.TailFrom, l.TailAt)
	}
	if l.Locks != nil {
		fmt.Fprintf(out, "  %v\n", l.Locks)
	}
}
