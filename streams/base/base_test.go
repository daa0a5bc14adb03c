package base_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
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

func static(name string, b ...record.Base) base.Source { return base.Static{Name: name, Bases: b} }

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
		found, err := base.Newest(t.Context(), c.sources, time.Second, "trading", 0)
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

// TestFolderIsDamaged names the file.
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
		_, err := base.Newest(t.Context(), []base.Source{f, static("b", at(10))}, time.Second, "trading", 0)
		var refused *record.BaseError
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", what, err)
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
