package base_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/base"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

func at(sequence int64) record.Base {
	return record.Base{Journal: "trading", Partitions: 1, JournalID: scalar.ID{1}, Sequence: sequence,
		Prev: record.Hash{byte(sequence)}, Term: 1}
}

// silent is a source that can't be asked.
type silent struct{}

func (silent) Base(context.Context, string, int32) (*record.Base, error) {
	return nil, errors.New("no answer")
}
func (silent) String() string { return "a silent source" }

// staticSource is a source of given bases.
type staticSource struct {
	name  string
	bases []record.Base
}

func (s staticSource) Base(_ context.Context, journal string, partition int32) (*record.Base, error) {
	for _, b := range s.bases {
		if b.Journal == journal && b.Partition == partition {
			return &b, nil
		}
	}
	return nil, nil
}
func (s staticSource) String() string { return s.name }

func static(name string, b ...record.Base) base.Source { return staticSource{name, b} }

// hung is a source that does not heed its context until it is closed.
type hung chan struct{}

func (h hung) Base(context.Context, string, int32) (*record.Base, error) {
	<-h
	return nil, nil
}
func (hung) String() string { return "a hung source" }

// TestNewestDoesNotWaitForAHungSource returns what the others have.
func TestNewestDoesNotWaitForAHungSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := make(hung)
		defer close(h)
		found, err := base.Newest(t.Context(), []base.Source{h, static("b", at(10))}, 50*time.Millisecond, "trading", 0)
		if err != nil || found.Base == nil || *found.Base != at(10) || !errors.Is(found.Silent, context.DeadlineExceeded) ||
			!strings.Contains(found.Silent.Error(), "a hung source") {
			t.Errorf("%v, %v, %v", found.Base, found.Silent, err)
		}
	})
}

// TestNewestComparesAllCopies finds a contradiction in any order of the sources.
func TestNewestComparesAllCopies(t *testing.T) {
	forked := at(10)
	forked.Prev = record.Hash{99}
	copies := []base.Source{static("a", at(10)), static("b", at(20)), static("c", forked), silent{}}
	for _, order := range permutations(len(copies)) {
		var sources []base.Source
		for _, i := range order {
			sources = append(sources, copies[i])
		}
		found, err := base.Newest(t.Context(), sources, time.Minute, "trading", 0)
		if err == nil || !strings.Contains(err.Error(), "contradict each other: record 9 has the hashes") {
			t.Errorf("in the order %v: %v, %v", order, found.Base, err)
		}
	}
}

// permutations returns all orders of n things.
func permutations(n int) (all [][]int) {
	if n == 0 {
		return [][]int{nil}
	}
	for _, shorter := range permutations(n - 1) {
		for i := range n {
			all = append(all, slices.Insert(slices.Clone(shorter), i, n-1))
		}
	}
	return all
}

func TestNewest(t *testing.T) {
	other, forked := at(20), at(20)
	other.JournalID, forked.Prev = scalar.ID{2}, record.Hash{99}
	for name, c := range map[string]struct {
		sources []base.Source
		want    int64  // the sequence; 0 for none
		silent  string // in Found.Silent
		refused string // in the error
	}{
		"no source":                  {},
		"none knows":                 {sources: []base.Source{static("a"), static("b")}},
		"one is lost":                {sources: []base.Source{static("a"), static("b", at(10))}, want: 10},
		"the newest counts":          {sources: []base.Source{static("a", at(10)), static("b", at(20)), static("c", at(15))}, want: 20},
		"one is silent":              {sources: []base.Source{silent{}, static("b", at(10))}, want: 10, silent: "a silent source: no answer"},
		"all are silent":             {sources: []base.Source{silent{}}, silent: "no answer"},
		"two hashes":                 {sources: []base.Source{static("a", at(20)), static("b", forked)}, refused: "the bases in a and in b contradict each other: record 19 has the hashes"},
		"a base of another journal":  {sources: []base.Source{static("a", at(10)), static("b", other)}, refused: "one is of the journal"},
		"other partitions of others": {sources: []base.Source{static("a", record.Base{Journal: "trading", Partition: 1})}},
	} {
		found, err := base.Newest(t.Context(), c.sources, time.Minute, "trading", 0)
		var refused *record.BaseError
		if c.refused != "" {
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), c.refused) || !record.Final(err) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		got := int64(0)
		if found.Base != nil {
			got = found.Base.Sequence
		}
		if err != nil || got != c.want || (found.Silent == nil) != (c.silent == "") {
			t.Errorf("%s: %v with %v, %v", name, got, found.Silent, err)
		}
		if found.Silent != nil && !strings.Contains(found.Silent.Error(), c.silent) {
			t.Errorf("%s: silent is %v", name, found.Silent)
		}
	}
}

func TestFolder(t *testing.T) {
	ctx := t.Context()
	f := base.Folder{Dir: filepath.Join(t.TempDir(), "bases"), TopicPrefix: "p-"}
	if b, err := f.Base(ctx, "trading", 0); b != nil || err != nil {
		t.Fatalf("a folder that is not there: %v, %v", b, err)
	}
	for _, b := range []record.Base{at(10), at(10), at(20)} {
		if err := f.Keep(ctx, b); err != nil {
			t.Fatal(err)
		}
		if got, err := f.Base(ctx, "trading", 0); err != nil || *got != b {
			t.Errorf("%v, %v", got, err)
		}
	}
	other := at(30)
	other.JournalID = scalar.ID{2}
	for what, b := range map[string]record.Base{"older": at(15), "of another journal": other, "invalid": {}} {
		if err := f.Keep(ctx, b); err == nil {
			t.Errorf("a base that is %s was kept", what)
		}
	}
	if got, err := f.Base(ctx, "trading", 0); err != nil || *got != at(20) {
		t.Errorf("after refusals: %v, %v", got, err)
	}
	if got, err := f.Base(ctx, "identity", 0); got != nil || err != nil {
		t.Errorf("of another journal: %v, %v", got, err)
	}
	left, err := os.ReadDir(f.Dir)
	if err != nil || len(left) != 1 || left[0].Name() != "p-trading-0.json" {
		t.Errorf("%v, %v", left, err)
	}
}

// TestFolderSyncs wants the entry of every folder on disk before Keep returns, also if an earlier call failed.
func TestFolderSyncs(t *testing.T) {
	root := t.TempDir()
	var synced []string
	broken := errors.New("the disk is broken")
	fails := ""
	f := base.Folder{Dir: filepath.Join(root, "a", "b", "bases")}.WithSync(func(dir string) error {
		synced = append(synced, dir)
		if dir == fails {
			return broken
		}
		return nil
	})
	keep := func() error {
		synced = nil
		return f.Keep(t.Context(), at(10))
	}
	if err := keep(); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{root, filepath.Join(root, "a"), filepath.Join(root, "a", "b")} {
		if !slices.Contains(synced, dir) {
			t.Errorf("%s has a new entry and is not synced; only %v are", dir, synced)
		}
	}
	for _, dir := range []string{f.Dir, filepath.Dir(f.Dir)} {
		if fails = dir; !errors.Is(keep(), broken) {
			t.Errorf("a copy that is there already is not kept durably: %s was not synced", dir)
		}
	}
}

// TestFolderIsDamaged names the file, and what to do about it if another copy is sound.
func TestFolderIsDamaged(t *testing.T) {
	f := base.Folder{Dir: t.TempDir()}
	path := filepath.Join(f.Dir, "trading-0.json")
	sound := string(at(10).JSON())
	identity := at(10)
	identity.Journal = "identity"
	for what, text := range map[string]string{"empty": "", "cut": sound[:40], "of another journal": string(identity.JSON()), "twice": sound + sound} {
		if err := os.WriteFile(path, []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := base.Newest(t.Context(), []base.Source{f, static("b", at(10))}, time.Minute, "trading", 0)
		var refused *record.BaseError
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "the copy in b is sound, so delete this file") {
			t.Errorf("%s: %v", what, err)
		}
		_, err = base.Newest(t.Context(), []base.Source{f, static("b")}, time.Minute, "trading", 0)
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), "no other source has a sound copy") {
			t.Errorf("%s, without another copy: %v", what, err)
		}
	}
}

func TestTrimForm(t *testing.T) {
	sound := base.Trim{Base: at(10), Offset: 12}
	if got, err := base.ParseTrim(sound.JSON()); err != nil || got != sound {
		t.Errorf("%v, %v", got, err)
	}
	for what, text := range map[string]string{"a negative offset": strings.Replace(string(sound.JSON()), ":12}", ":-1}", 1), "no offset": `{"base":` + string(at(10).JSON()) + `}`, "nothing": ""} {
		if got, err := base.ParseTrim([]byte(text)); err == nil {
			t.Errorf("%s: %v", what, got)
		}
	}
	if sound.Check(12) != nil || sound.Check(11) == nil {
		t.Error("a trim is checked against the offset that is safe")
	}
}

func FuzzParseTrim(f *testing.F) {
	f.Add(base.Trim{Base: at(10), Offset: 12}.JSON())
	f.Fuzz(func(t *testing.T, text []byte) {
		if got, err := base.ParseTrim(text); err == nil && (got.Check(got.Offset) != nil || string(got.JSON()) != string(text)) {
			t.Errorf("%q is read as %+v", text, got)
		}
	})
}
