package admin

import (
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// dueEntry is an item of due work.
type dueEntry struct {
	Journal string      `json:"journal"`
	Entry   string      `json:"entry"`
	Due     scalar.Time `json:"due"`
	Status  string      `json:"status"`  // waiting or set_aside
	Urgency string      `json:"urgency"` // blocking or alternating
	Error   *string     `json:"error"`
}

func newDueEntry(journal string, e decide.DueEntry) dueEntry {
	out := dueEntry{Journal: journal, Entry: e.Entry, Due: e.Time, Status: "waiting", Urgency: "alternating"}
	if e.Urgency == decide.Blocking {
		out.Urgency = "blocking"
	}
	if e.Error != "" {
		out.Status, out.Error = "set_aside", &e.Error
	}
	return out
}

// duePage collects a page of the due work of several journals.
type duePage struct {
	rest.Numbered
	items []dueEntry
	total int
}

// add adds a journal's entries: first those set aside, then those waiting, in the order of execution.
func (p *duePage) add(journal string, a decide.Agenda) {
	aside := a.SetAsideEntries()
	p.put(journal, aside[min(p.skip(), len(aside)):])
	p.total += len(aside)
	waiting, n := a.DueEntries(p.skip(), p.Size-len(p.items))
	p.put(journal, waiting)
	p.total += n
}

// skip returns how many of the next entries precede the page.
func (p *duePage) skip() int { return max(p.Offset()-p.total, 0) }

func (p *duePage) put(journal string, entries []decide.DueEntry) {
	for _, e := range entries[:min(p.Size-len(p.items), len(entries))] {
		p.items = append(p.items, newDueEntry(journal, e))
	}
}

// listDue lists the set-aside and waiting work, journal by journal.
func (h *Handler) listDue(c echo.Context) error {
	query := rest.Query(c)
	page := duePage{Numbered: rest.ReadNumbered(query)}
	if err := query.Done(); err != nil {
		return err
	}
	err := rest.ViewAll(c, h.cfg.Folds, func(name string, s decide.State) {
		if agenda, ok := s.(decide.Agenda); ok { // other states never have due work
			page.add(name, agenda)
		}
	})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, rest.NewItems(page.Numbered, page.items, page.total))
}

// putBack is the response to putting an entry back.
type putBack struct {
	Journal string `json:"journal"`
	Entry   string `json:"entry"`
}

func (h *Handler) putBackDue(c echo.Context) error {
	query := rest.Query(c)
	name := query.OptionalString("journal").Value
	if err := query.Done(); err != nil {
		return err
	}
	if err := rest.BodyAbsent(c); err != nil {
		return err
	}
	payload := &decide.PutBackDue{Entry: rest.Param(c, "entry")}
	if name == "" {
		if name = h.agendaOf(c, payload); name == "" {
			return problem.NotFound("UNKNOWN_DUE_ENTRY", "No due work of this name was set aside.")
		}
	}
	to, _, err := h.journalOf(c, name, payload)
	if err != nil {
		return err
	}
	e, err := rest.Execute[*decide.DuePutBack](c, to, payload)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, putBack{name, e.Entry})
}

// agendaOf chooses the journal for a request that names none. It is the journal that remembers the request's
// idempotency key, else the one that has the entry set aside, else one with entry names of this form, else "".
func (h *Handler) agendaOf(c echo.Context, payload *decide.PutBackDue) string {
	if name := h.rememberedBy(c, payload.CommandType()); name != "" {
		return name
	}
	return h.hasSetAside(payload.Entry)
}

// hasSetAside returns the journal that has the entry set aside, else one with entry names of this form, else "".
func (h *Handler) hasSetAside(entry string) (name string) {
	for _, journalName := range operation.Names(h.cfg.Folds) {
		has := false
		h.cfg.Folds[journalName].View(func(s decide.State, _ record.Position) {
			agenda, ok := s.(decide.Agenda)
			if !ok {
				return
			}
			if agenda.NamesDueWork(entry) {
				name = journalName
			}
			has = slices.ContainsFunc(agenda.SetAsideEntries(), func(e decide.DueEntry) bool { return e.Entry == entry })
		})
		if has {
			return journalName
		}
	}
	return name
}
