package disclose_test

import (
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/go-json-experiment/json"

	"github.com/perpetua-exchange/perpetua/domain/disclose"
	"github.com/perpetua-exchange/perpetua/schemas"
)

// TestEveryMemberHasAClass: the schemas compile, and no longer do if any one class is missing.
func TestEveryMemberHasAClass(t *testing.T) {
	p, err := disclose.Compile(schemas.Events())
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Journals(); !slices.Equal(got, []string{"identity", "onboarding", "trading"}) {
		t.Errorf("the journals are %v", got)
	}
	all := loaded(t)
	classes := 0
	for _, name := range slices.Sorted(maps.Keys(all)) {
		files := all
		if name != "common.schema.json" { // the others do not depend on each other
			files = fstest.MapFS{}
			for _, one := range []string{"common.schema.json", "journal/record.schema.json", name} {
				files[one] = all[one]
			}
		}
		text := string(all[name].Data)
		for at := 0; ; {
			i := strings.Index(text[at:], `"x-disclosure":`)
			if i < 0 {
				break
			}
			at += i
			end := strings.IndexAny(text[at:], ",\n}") + at
			changed := maps.Clone(files)
			changed[name] = &fstest.MapFile{Data: []byte(text[:at] + `"title":"x"` + text[end:])}
			if _, err := disclose.Compile(changed); err == nil {
				t.Errorf("%s without the class at byte %d is accepted", name, at)
			}
			at, classes = end, classes+1
		}
	}
	if classes < 400 {
		t.Errorf("only %d classes were taken away", classes)
	}
}

func TestSchemasThatAreRefused(t *testing.T) {
	for name, c := range map[string]struct{ schema, complaint string }{
		"no class":            {`{"properties":{"a":{"type":"string"}}}`, "/a has no class"},
		"no class in a list":  {`{"properties":{"a":{"items":{"type":"string"}}}}`, "/a[] has no class"},
		"nor in an object":    {`{"properties":{"a":{"properties":{"b":{}}}}}`, "/a/b has no class"},
		"an unknown class":    {`{"properties":{"a":{"x-disclosure":"secret"}}}`, `no class "secret"`},
		"an unknown ref":      {`{"$ref":"urn:perpetua:common#/$defs/none"}`, "there is no urn"},
		"an owner of nothing": {`{"x-disclosure-owner":["customer"],"properties":{"a":{"x-disclosure":"public"}}}`, "names no member"},
		"a broken template":   {`{"x-disclosure-owner":["customer/{a"],"properties":{"a":{"x-disclosure":"public"}}}`, "is no template"},
		"no JSON":             {`{`, "x.v1.schema.json"},
	} {
		all := loaded(t)
		all["trading/x.v1.schema.json"] = &fstest.MapFile{Data: []byte(c.schema)}
		if _, err := disclose.Compile(all); err == nil || !strings.Contains(err.Error(), c.complaint) || !strings.Contains(err.Error(), "trading/x.v1.schema.json") {
			t.Errorf("%s: %v", name, err)
		}
	}
	none := loaded(t)
	delete(none, "journal/record.schema.json")
	if _, err := disclose.Compile(none); err == nil {
		t.Error("there are classes without the schema of a record")
	}
	if _, err := disclose.Compile(fstest.MapFS{}); err == nil {
		t.Error("there are classes without schemas")
	}
}

// TestTheCommandIsDescribedTwice: the record's schema and those of the journals' commands sort the same members in the same way.
func TestTheCommandIsDescribedTwice(t *testing.T) {
	type member struct {
		Class  string `json:"x-disclosure"`
		Hashed bool   `json:"x-disclosure-hashed"`
	}
	type object struct {
		Properties map[string]member `json:"properties"`
	}
	var common struct {
		Defs struct {
			Command object `json:"command"`
		} `json:"$defs"`
	}
	var record struct {
		Properties struct {
			Command struct {
				Properties struct {
					Data object `json:"data"`
				} `json:"properties"`
			} `json:"command"`
		} `json:"properties"`
	}
	all := loaded(t)
	for name, to := range map[string]any{"common.schema.json": &common, "journal/record.schema.json": &record} {
		if err := json.Unmarshal(all[name].Data, to); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := record.Properties.Command.Properties.Data.Properties, common.Defs.Command.Properties; !maps.Equal(got, want) || len(want) == 0 {
		t.Errorf("a record's command has the classes %v, a command %v", got, want)
	}
}

// loaded returns the schemas of this repository.
func loaded(t testing.TB) fstest.MapFS {
	t.Helper()
	out := make(fstest.MapFS)
	err := fs.WalkDir(schemas.Events(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(schemas.Events(), name)
		out[name] = &fstest.MapFile{Data: text}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
