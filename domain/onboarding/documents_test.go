package onboarding_test

import (
	"slices"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/document"
	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/webhook"
)

func TestAddingDocuments(t *testing.T) {
	l := owners(t)
	for _, c := range []struct {
		name  string
		spoil func(*onboarding.AddDocument)
		want  string
	}{
		{"without an id", func(p *onboarding.AddDocument) { p.ID = scalar.ID{} }, "INVALID_ID"},
		{"of nobody", func(p *onboarding.AddDocument) { p.Ref = ghost }, "PERSON_NOT_FOUND"},
		{"of another tenant's", func(p *onboarding.AddDocument) { p.Ref = bob }, "PERSON_NOT_FOUND"},
		{"for no purpose", func(p *onboarding.AddDocument) { p.Category = "" }, "INVALID_CATEGORY"},
		{"for an unknown one", func(p *onboarding.AddDocument) { p.Category = "x" }, "INVALID_CATEGORY"},
		{"for a misspelled one", func(p *onboarding.AddDocument) { p.Category = "bank_statment" }, "INVALID_CATEGORY"}, //nolint:misspell // the alias
		{"upside down", func(p *onboarding.AddDocument) { p.Orientation = "down" }, "INVALID_ORIENTATION"},
		{"without a name", func(p *onboarding.AddDocument) { p.Name = nil }, "INVALID_NAME"},
		{"nowhere", func(p *onboarding.AddDocument) { p.Source = "" }, "INVALID_SOURCE"},
		{"somewhere odd", func(p *onboarding.AddDocument) { p.Source = "a b" }, "INVALID_SOURCE"},
		{"without a hash", func(p *onboarding.AddDocument) { p.SHA256 = nil }, "INVALID_SHA256"},
		{"empty", func(p *onboarding.AddDocument) { p.Size = 0 }, "INVALID_SIZE"},
		{"too large", func(p *onboarding.AddDocument) { p.Size = onboarding.MaxFile + 1 }, "INVALID_SIZE"},
		{"of no kind", func(p *onboarding.AddDocument) { p.Format = "exe" }, "INVALID_FORMAT"},
		{"a table as a passport", func(p *onboarding.AddDocument) { p.Format = "csv" }, "INVALID_CATEGORY"},
		{"a table of trades", func(p *onboarding.AddDocument) { p.Format, p.Category = "csv", "trading_history" }, "document.added"},
		{"with an id that is there", func(*onboarding.AddDocument) {}, "DOCUMENT_ID_TAKEN"},
		{"another one", func(p *onboarding.AddDocument) { p.ID = id(11) }, "document.added"},
	} {
		p := upload(ann, 10)
		c.spoil(p)
		if got := l.do(alpha, p); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	if d, known := l.state.Document(id(11)); !known || d.Ref != ann || d.Created != start {
		t.Errorf("%+v", d)
	}
	l.replayed()
}

func TestChangingDocuments(t *testing.T) {
	l := owners(t)
	l.must(alpha, upload(ann, 10))
	of := func(ref owner.Ref, n byte, category string, until *scalar.Time) *onboarding.ChangeDocument {
		p := &onboarding.ChangeDocument{Ref: ref, ID: id(n), ValidUntil: until}
		if category != "" {
			p.Category = ptr(document.Category(category))
		}
		return p
	}
	l.run([]expect{
		{"of nobody", operator, of(ghost, 10, "poa", nil), "PERSON_NOT_FOUND"},
		{"of another", operator, of(bob, 10, "poa", nil), "DOCUMENT_NOT_FOUND"},
		{"not there", operator, of(ann, 11, "poa", nil), "DOCUMENT_NOT_FOUND"},
		{"to no category", operator, of(ann, 10, "x", nil), "INVALID_CATEGORY"},
		{"beyond all years", operator, of(ann, 10, "", ptr(scalar.Time(1)<<62)), "INVALID_VALID_UNTIL"},
		{"nothing", operator, of(ann, 10, "id_document", nil), "NOTHING_CHANGED"},
		{"its category", operator, of(ann, 10, "poa", nil), "document.changed"},
		{"its end", operator, of(ann, 10, "", ptr(start+scalar.Day)), "document.changed"},
	})
	if d, _ := l.state.Document(id(10)); d.Category != "poa" || d.ValidUntil != start+scalar.Day {
		t.Errorf("%+v", d)
	}
	l.replayed()
}

// TestReminders: thirty days before a document ends its tenant is told, once for each end.
func TestReminders(t *testing.T) {
	l := owners(t)
	p := upload(ann, 10)
	p.ValidUntil = start + 40*scalar.Day
	l.must(alpha, p)
	past := upload(ann, 11)
	past.ValidUntil = start - 1
	l.must(alpha, past)
	for _, c := range []struct {
		day      scalar.Time
		until    scalar.Time       // in days, if the operator sets it
		category document.Category // if the operator sets that
		notice   bool
	}{
		{day: 9}, {day: 10, notice: true}, {day: 11, category: "poa"}, {day: 12}, {day: 41},
		{day: 42, until: 100}, {day: 69}, {day: 70, notice: true}, // another end
		{day: 71, until: 80, notice: true}, // which is nearer than thirty days
		{day: 72, until: 50},               // and one that has passed
		{day: 73, until: 0}, {day: 500},
	} {
		l.now = start + c.day*scalar.Day
		if c.until != 0 || c.day == 73 {
			until := start + c.until*scalar.Day
			if c.until == 0 {
				until = 0
			}
			l.must(operator, &onboarding.ChangeDocument{Ref: ann, ID: id(10), ValidUntil: &until})
		}
		if c.category != "" {
			l.must(operator, &onboarding.ChangeDocument{Ref: ann, ID: id(10), Category: &c.category})
		}
		if got := l.steps(); (len(got) == 1) != c.notice {
			t.Errorf("on day %d: %q", c.day, got)
		}
	}
	l.replayed()
	if _, some := l.state.NextDue(); some {
		t.Error("something is left")
	}
}

// TestNoticesAreCounted looks at what a reminder tells, and that each owner's notices are counted.
func TestNoticesAreCounted(t *testing.T) {
	l := owners(t)
	for n, ref := range []owner.Ref{ann, ann, corp} {
		p := upload(ref, byte(10+n))
		p.ValidUntil = start + scalar.Day + scalar.Time(n)
		l.must(alpha, p)
	}
	var seen []string
	ids := make(map[scalar.ID]bool)
	for l.state.Due(l.now) != decide.Nothing {
		first, total := l.state.DueEntries(0, 1)
		if next, _ := l.state.NextDue(); total != 3-len(seen) || first[0].Time != next || first[0].Urgency != decide.Alternate {
			t.Errorf("%+v of %d", first, total)
		}
		l.fold(decide.Recorded{Actor: decide.Engine}, l.state.Step(l.stamp(), true))
		n := l.last[0].(*onboarding.NoticeGiven).Notice
		if n.Type != webhook.DocumentExpiring || n.Tenant != "alpha" || n.Time != l.now || n.Document.Category != "id_document" || n.ID.IsZero() || ids[n.ID] {
			t.Errorf("%+v", n)
		}
		ids[n.ID] = true
		seen = append(seen, string('a'+n.Document.ID[15]-10)+string(n.Ref.Type[0])+string('0'+byte(n.Sequence)))
	}
	slices.Sort(seen)
	if !slices.Equal(seen, []string{"ap1", "bp2", "cc1"}) && !slices.Equal(seen, []string{"ap2", "bp1", "cc1"}) {
		t.Errorf("%q", seen)
	}
	l.replayed()
}

// TestWorkThatFails: what was set aside stays there until it is put back, or until what it was about has changed.
func TestWorkThatFails(t *testing.T) {
	l := owners(t)
	p := upload(ann, 10)
	p.ValidUntil = start + scalar.Day
	l.must(alpha, p)
	entry := "document_expiring/" + id(10).String()
	aside := func() {
		t.Helper()
		l.fold(decide.Recorded{Actor: decide.Engine}, l.state.SetAside(l.stamp(), "it is broken"))
		if all := l.state.SetAsideEntries(); len(all) != 1 || all[0].Entry != entry || all[0].Error != "it is broken" || len(l.steps()) != 0 {
			t.Errorf("%+v", all)
		}
	}
	aside()
	l.must(operator, &decide.PutBackDue{Entry: entry})
	if len(l.state.SetAsideEntries()) != 0 || l.state.Due(l.now) != decide.Alternate {
		t.Error("it is not back")
	}
	aside()
	l.replayed()
	l.must(operator, &onboarding.ChangeDocument{Ref: ann, ID: id(10), ValidUntil: ptr(start + 2*scalar.Day)})
	if len(l.state.SetAsideEntries()) != 0 || len(l.steps()) != 1 {
		t.Error("another end has its own reminder")
	}
	l.replayed()
}
