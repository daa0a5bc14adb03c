package tools

import (
	"encoding/base64"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/local"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/streams/base"
	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/broker"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/seal"
)

// TestArchiveOfAWholeLog checks the archive of a log that was not trimmed: its own one, damaged in several ways, and that of a log
// which holds other records.
func TestArchiveOfAWholeLog(t *testing.T) {
	const n, inRange = 100, 32
	bucket := t.TempDir()
	key := base64.StdEncoding.EncodeToString(make([]byte, seal.KeySize))
	log := func(records int) string {
		all, _, _ := termsOf("trading", records, 0)
		return filledFolder(t, all, 64<<10, func(*broker.Broker, *journal.Client, base.Folder) {})
	}
	whole, short := log(n), log(n/2)
	std := outputTo(io.Discard)
	std.ArchiveRange = inRange
	if err := Log(t.Context(), []string{"archive", "--data", whole, "--to", blob.URLOf(bucket), "--journal", "trading", "--master-key", key}, std); err != nil {
		t.Fatal(err)
	}
	examine := func(dir string, args ...string) *diagnosis {
		return archivesOf(t, std, append([]string{"--data", dir, "--archive-url", blob.URLOf(bucket), "--master-key", key}, args...)...)
	}
	if d := examine(whole, "--archive-key-file", filepath.Join(bucket, "none")); len(d.findings) != 3 || !d.holds(isNote, "archive trading it was not checked") {
		t.Errorf("without a key: %v", d.findings)
	}
	if d := examine(whole); !d.holds(isGood, "archive trading it has the 96 records up to the end of its last full range, which the log holds") || len(d.findings) != 1 {
		t.Errorf("%v", d.findings)
	}
	if d := examine(short); !d.holds(isFailed, "archive trading it is not the archive of this log") {
		t.Errorf("the archive of a longer log: %v", d.findings)
	}
	if d := examine(log(98)); !d.holds(isFailed, "archive trading it is not the archive of this log") {
		t.Errorf("the archive of a log with a longer tail: %v", d.findings)
	}
	follower, keyFile := &local.Folder{Dir: short}, filepath.Join(t.TempDir(), "key")
	if err := errors.Join(follower.SetFollows(local.FollowsArchive), os.WriteFile(keyFile, []byte(key), 0o600)); err != nil {
		t.Fatal(err)
	}
	if d := examine(short, "--archive-key-file", keyFile); !d.holds(isGood, "archive trading it has the 96 records") || len(d.findings) != 1 {
		t.Errorf("a follower that is behind: %v", d.findings)
	}
	if d := examine(short); len(d.findings) != 0 {
		t.Errorf("a follower without the key: %v", d.findings)
	}
	damage := func(name string) {
		found, err := filepath.Glob(filepath.Join(bucket, "archive", "*", "*", name))
		if err != nil || len(found) != 1 {
			t.Fatalf("%s: %v %v", name, found, err)
		}
		b, err := os.ReadFile(found[0])
		if err != nil {
			t.Fatal(err)
		}
		b[len(b)/2] ^= 1
		if err := os.WriteFile(found[0], b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	damage("tail")
	if d := examine(whole); !d.holds(isWarning, "archive trading the records after sequence 95 are not archived") {
		t.Errorf("a damaged tail: %v", d.findings)
	}
	damage("manifest-*1")
	if d := examine(whole); !d.holds(isFailed, "archive trading") {
		t.Errorf("a damaged manifest: %v", d.findings)
	}
}

// archivesOf returns what doctor finds of the archives of a venue without a bucket of its own.
func archivesOf(t *testing.T, std settings.IO, args ...string) *diagnosis {
	t.Helper()
	s, err := settings.Parse("doctor", args, std, nil)
	if err != nil {
		t.Fatal(err)
	}
	client, stop, err := OpenLog(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	d := &diagnosis{}
	d.checkArchives(t.Context(), s, client, nil, journals.All())
	return d
}
