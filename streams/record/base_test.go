package record_test

import (
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

func someBase() record.Base {
	return record.Base{Journal: "trading", Partition: 0, Partitions: 1, JournalID: scalar.ID{1, 2, 3}, Sequence: 65536,
		Prev: record.Hash{0xab, 1}, Term: 12}
}

func TestBaseForm(t *testing.T) {
	want := `{"journal":"trading","partition":0,"partitions":1,"journal_id":"01020300-0000-0000-0000-000000000000","sequence":65536,` +
		`"prev":"ab01` + strings.Repeat("0", 60) + `","term":12}`
	if got := string(someBase().JSON()); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if b, err := record.ParseBase([]byte(want)); err != nil || b != someBase() {
		t.Errorf("%v, %v", b, err)
	}
	for what, text := range map[string]string{
		"nothing":          "",
		"null":             "null",
		"more after it":    want + " {}",
		"a space":          strings.Replace(want, `,"term"`, `, "term"`, 1),
		"another order":    strings.Replace(want, `"journal":"trading","partition":0`, `"partition":0,"journal":"trading"`, 1),
		"a member missing": strings.Replace(want, `,"term":12`, "", 1),
		"another member":   strings.Replace(want, `"term"`, `"offset":1,"term"`, 1),
		"a member twice":   strings.Replace(want, `"term":12`, `"term":12,"term":12`, 1),
		"a longer number":  strings.Replace(want, `"term":12`, `"term":12.0`, 1),
		"upper-case hex":   strings.Replace(want, `"ab01`, `"AB01`, 1),
		"a text":           strings.Replace(want, `:65536`, `:"65536"`, 1),
	} {
		if b, err := record.ParseBase([]byte(text)); err == nil {
			t.Errorf("%s: %v", what, b)
		}
	}
}

func TestBaseValidate(t *testing.T) {
	for what, change := range map[string]func(*record.Base){
		"the genesis":         func(b *record.Base) { b.Sequence, b.Term = 0, 0 },
		"a negative sequence": func(b *record.Base) { b.Sequence = -1 },
		"no hash":             func(b *record.Base) { b.Prev = record.Hash{} },
		"no journal id":       func(b *record.Base) { b.JournalID = scalar.ID{} },
		"no journal":          func(b *record.Base) { b.Journal = "" },
		"an odd journal":      func(b *record.Base) { b.Journal = "../x" },
		"a partition of none": func(b *record.Base) { b.Partition, b.Partitions = 1, 1 },
		"more terms":          func(b *record.Base) { b.Sequence, b.Term = 3, 3 },
		"a negative term":     func(b *record.Base) { b.Term = -1 },
	} {
		b := someBase()
		change(&b)
		if err := b.Validate(); err == nil {
			t.Errorf("%s is a base", what)
		}
	}
}

func TestBaseContradicts(t *testing.T) {
	later := someBase()
	later.Sequence, later.Prev, later.Term = 70000, record.Hash{7}, 13
	for what, c := range map[string]struct {
		change func(*record.Base)
		want   string
	}{
		"the same":              {func(*record.Base) {}, ""},
		"a later one":           {func(b *record.Base) { *b = later }, ""},
		"another hash":          {func(b *record.Base) { b.Prev[9] = 1 }, "has the hashes"},
		"another journal id":    {func(b *record.Base) { *b = later; b.JournalID[0]++ }, "of the journal"},
		"another journal":       {func(b *record.Base) { b.Journal = "identity" }, "identity/0"},
		"other partitions":      {func(b *record.Base) { b.Partitions = 2 }, "partitions"},
		"a term that goes back": {func(b *record.Base) { *b = later; b.Term = 11 }, "in term"},
		"another term":          {func(b *record.Base) { b.Term++ }, "in the terms"},
	} {
		b := someBase()
		c.change(&b)
		for _, got := range []string{someBase().Contradicts(b), b.Contradicts(someBase())} {
			if !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
				t.Errorf("%s: %q", what, got)
			}
		}
	}
}

// FuzzParseBase holds that a base has one form only.
func FuzzParseBase(f *testing.F) {
	f.Add(someBase().JSON())
	f.Add([]byte(`{"journal":"x","partition":0}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		b, err := record.ParseBase(text)
		if err != nil {
			return
		}
		if b.Validate() != nil || string(b.JSON()) != string(text) {
			t.Errorf("%q is read as %+v", text, b)
		}
	})
}
