package onboarding

import (
	"archive/zip"
	"context"
	"io"
	"net/http"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/labstack/echo/v4"

	domain "github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/webhook"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/handlers/wire"
	"github.com/perpetua-exchange/perpetua/projections"
	view "github.com/perpetua-exchange/perpetua/projections/onboarding"
	"github.com/perpetua-exchange/perpetua/streams/seal"
)

// exportRoutes returns the route that exports an owner's data.
func (h *Handler) exportRoutes(k kind) []rest.Route {
	return []rest.Route{get(k.one()+"/export", h.export)}
}

// export responds with a zip of all data about an owner: JSON files by kind, the documents, and the receipts of
// webhook deliveries. The zip is created while it is sent; only one page of rows or one piece of a file is in memory.
func (h *Handler) export(c echo.Context) error {
	t, err := h.shownBare(c)
	if err != nil {
		return err
	}
	row, err := one(c, h, func(ctx context.Context, db projections.DB) (view.Owner, bool, int64, error) {
		return view.OneOwner(ctx, db, viewer(c), t.Ref)
	}, func() error { return notFound(t.Type) })
	if err != nil {
		return err
	}
	if c.Request().Method != http.MethodHead {
		leave, err := h.exports.Take(c.Request().Context(), rest.PrincipalOf(c).Broker)
		if err != nil {
			return err
		}
		defer leave()
	}
	// Before the first byte is sent, because the key may be destroyed.
	shown, err := h.showOwner(c.Request().Context(), &row.Owner, row.Fields)
	if err != nil {
		return err
	}
	head := c.Response().Header()
	head.Set(echo.HeaderContentType, "application/zip")
	head.Set(echo.HeaderContentDisposition, attachment(strings.ReplaceAll(t.Ref.String(), "/", "-")+".zip"))
	guard(head)
	if c.Request().Method == http.MethodHead { // do not create the zip
		return c.NoContent(http.StatusOK)
	}
	return streamed(c, func(w io.Writer) error {
		x := &export{h: h, c: c, ctx: c.Request().Context(), t: t, zip: zip.NewWriter(w)}
		return x.write(shown)
	})
}

// export is the state of a running export.
type export struct {
	h   *Handler
	c   echo.Context
	ctx context.Context
	t   *target
	zip *zip.Writer
}

// write writes all parts of the export.
func (x *export) write(shown any) error {
	into, err := x.create(string(x.t.Type)+".json", zip.Deflate)
	if err != nil {
		return err
	}
	if err := json.MarshalWrite(into, shown, jsontext.Multiline(true)); err != nil {
		return err
	}
	parts := []func() error{x.responses, x.triggers, x.events, x.receipts, x.documents}
	if rest.PrincipalOf(x.c).SeesAll() {
		parts = append([]func() error{x.keeping}, parts...)
	}
	for _, part := range parts {
		if err := part(); err != nil {
			return err
		}
	}
	return x.zip.Close()
}

func (x *export) create(name string, method uint16) (io.Writer, error) {
	return x.zip.CreateHeader(&zip.FileHeader{Name: name, Method: method, Modified: x.h.cfg.Now().UTC().Truncate(2 * time.Second)})
}

// exportPage is the number of rows in one read.
const exportPage = 100

// array writes all rows of a list as one JSON array. The newest rows come first, so rows that are added during the
// export move others to the next page. Those are skipped when they appear again.
func array[Row any](x *export, name string, id func(*Row) scalar.ID, read pageOf[Row], show shower[Row]) error {
	into, err := x.create(name, zip.Deflate)
	if err != nil {
		return err
	}
	out := jsontext.NewEncoder(into, jsontext.Multiline(true))
	if err := out.WriteToken(jsontext.BeginArray); err != nil {
		return err
	}
	seen := make(map[scalar.ID]bool)
	for offset := 0; ; offset += exportPage {
		rows, total, _, err := read(x.ctx, x.h.rows.DB, exportPage, offset)
		if err != nil {
			return err
		}
		for i := range rows {
			key := id(&rows[i])
			if seen[key] {
				continue
			}
			seen[key] = true
			shown, err := show(x.ctx, &rows[i])
			if err != nil { // also if the owner is erased during the export
				return err
			}
			if err := json.MarshalEncode(out, shown); err != nil {
				return err
			}
		}
		if offset+exportPage >= total || len(rows) == 0 {
			return out.WriteToken(jsontext.EndArray)
		}
	}
}

// keeping explains why an owner's data is retained or is about to be erased. Tenants do not get it. An erased owner
// has a certificate instead.
type keeping struct {
	Holds   []hold          `json:"holds"`   // and releases, oldest first
	Erasure *erasureRequest `json:"erasure"` // null: no erasure was requested
}

type hold struct {
	Held   bool        `json:"held"`
	Reason string      `json:"reason"`
	Actor  string      `json:"actor"`
	Time   scalar.Time `json:"time"`
}

type erasureRequest struct {
	RequestedAt scalar.Time `json:"requested_at"`
	RequestedBy string      `json:"requested_by"`
	Reason      string      `json:"reason"`
	RetainUntil scalar.Time `json:"retain_until"`
}

// keeping writes keeping.json, for operators and auditors.
func (x *export) keeping() error {
	ref, db := x.t.Ref, x.h.rows.DB
	holds, _, err := view.Holds(x.ctx, db, ref)
	if err != nil {
		return err
	}
	erasure, found, _, err := view.OneErasure(x.ctx, db, ref)
	if err != nil {
		return err
	}
	out := keeping{Holds: make([]hold, len(holds))}
	for i, r := range holds {
		reason, err := x.h.cfg.Box.Open(r.Reason, seal.ErasureReason(ref))
		if err != nil {
			return err
		}
		out.Holds[i] = hold{r.Held, string(reason), r.Actor, r.Time}
	}
	if found {
		reason, err := x.h.cfg.Box.Open(erasure.Reason, seal.ErasureReason(ref))
		if err != nil {
			return err
		}
		out.Erasure = &erasureRequest{erasure.RequestedAt, erasure.RequestedBy, string(reason), erasure.RetainUntil}
	}
	into, err := x.create("keeping.json", zip.Deflate)
	if err != nil {
		return err
	}
	return json.MarshalWrite(into, out, jsontext.Multiline(true))
}

func (x *export) responses() error {
	return array(x, "responses.json", func(r *view.Response) scalar.ID { return r.ID },
		func(ctx context.Context, db projections.DB, size, offset int) ([]view.Response, int, int64, error) {
			return view.Responses(ctx, db, viewer(x.c), x.t.Ref, size, offset)
		}, func(ctx context.Context, row *view.Response) (any, error) {
			return x.h.showResponse(ctx, &row.ResponseAdded)
		})
}

// exportedTrigger is a trigger with its timeline.
type exportedTrigger struct {
	wire.EntitlementTrigger
	Timeline []wire.CaseEvent `json:"timeline"`
}

func (x *export) triggers() error {
	return array(x, "entitlement_triggers.json", func(r *view.Trigger) scalar.ID { return r.ID },
		func(ctx context.Context, db projections.DB, size, offset int) ([]view.Trigger, int, int64, error) {
			return view.TriggersOf(ctx, db, viewer(x.c), x.t.Ref, size, offset)
		}, func(ctx context.Context, row *view.Trigger) (any, error) {
			events, _, err := view.Timeline(ctx, x.h.rows.DB, row.ID)
			if err != nil {
				return nil, err
			}
			out := exportedTrigger{showTrigger(row), make([]wire.CaseEvent, len(events))}
			for i := range events {
				if out.Timeline[i], err = x.h.showCaseEvent(x.c, &events[i]); err != nil {
					return nil, err
				}
			}
			return out, nil
		})
}

// events writes the bodies of the owner's webhook notifications.
func (x *export) events() error {
	into, err := x.create("events.json", zip.Deflate)
	if err != nil {
		return err
	}
	out := jsontext.NewEncoder(into, jsontext.Multiline(true))
	if err := out.WriteToken(jsontext.BeginArray); err != nil {
		return err
	}
	p := projections.Page{Size: exportPage}
	for {
		page, err := view.Notices(x.ctx, x.h.rows.DB, view.NoticeFilter{Owner: x.t.Ref}, p)
		if err != nil {
			return err
		}
		for i := range page.Rows {
			if err := x.event(out, &page.Rows[i].Value.Notice); err != nil {
				return err
			}
		}
		if !page.HasNext || len(page.Rows) == 0 {
			return out.WriteToken(jsontext.EndArray)
		}
		p.After = &page.Rows[len(page.Rows)-1].Key
	}
}

func (x *export) event(out *jsontext.Encoder, n *domain.Notice) error {
	reason, err := x.h.reason(x.ctx, n.Ref, n.TriggerID, n.Reason)
	if err != nil {
		return err
	}
	body, err := n.Body(reason)
	if err != nil {
		return err
	}
	return json.MarshalEncode(out, body)
}

// receipt is the result of a delivery.
type receipt struct {
	ID        scalar.ID         `json:"id"`
	WebhookID scalar.ID         `json:"webhook_id"`
	EventID   scalar.ID         `json:"event_id"`
	EventType webhook.EventType `json:"event_type"`
	Status    webhook.Status    `json:"status"`
	Created   scalar.Time       `json:"created_at"`
	Attempts  []wire.Attempt    `json:"attempts"`
}

// receipts writes the results of all deliveries.
func (x *export) receipts() error {
	var attempts map[scalar.ID][]view.Attempt
	return array(x, "deliveries.json", func(r *view.Delivery) scalar.ID { return r.ID },
		func(ctx context.Context, db projections.DB, size, offset int) (rows []view.Delivery, total int, asOf int64, err error) {
			if rows, total, asOf, err = view.Deliveries(ctx, db, view.DeliveryFilter{OwnerID: x.t.ID}, size, offset); err == nil {
				attempts, err = view.Attempts(ctx, db, rows)
			}
			return rows, total, asOf, err
		}, func(ctx context.Context, row *view.Delivery) (any, error) {
			out := receipt{ID: row.ID, WebhookID: row.WebhookID, EventID: row.NoticeID, EventType: row.Type, Status: row.Status, Created: row.Created,
				Attempts: []wire.Attempt{}}
			for _, a := range attempts[row.ID] {
				text, err := x.h.optionalText(ctx, row.Ref, seal.DeliveryResponse(row.Ref, row.ID), a.Reply)
				if err != nil {
					return nil, err
				}
				var reply []byte
				if text != nil {
					reply = []byte(*text)
				}
				out.Attempts = append(out.Attempts, wire.NewAttempt(a.Number, a.Started, a.DurationMS, a.StatusCode, a.Error, reply))
			}
			return out, nil
		})
}

// exportedDocument is a document with the path of the file in the zip.
type exportedDocument struct {
	wire.Document
	File string `json:"file"`
}

// documents writes the list of documents and then the files.
func (x *export) documents() error {
	type exportedFile struct {
		document domain.Document
		path     string
	}
	var all []exportedFile
	err := array(x, "documents.json", func(r *view.Document) scalar.ID { return r.ID },
		func(ctx context.Context, db projections.DB, size, offset int) ([]view.Document, int, int64, error) {
			return view.Documents(ctx, db, viewer(x.c), x.t.Ref, size, offset)
		}, func(ctx context.Context, row *view.Document) (any, error) {
			shown, err := x.h.showDocument(ctx, &row.Document, row.Name)
			at := path.Join("files", row.ID.String(), safeName(shown.Name))
			all = append(all, exportedFile{row.Document, at})
			return exportedDocument{shown, at}, err
		})
	if err != nil {
		return err
	}
	for i := range all {
		into, err := x.create(all[i].path, zip.Store) // most uploaded formats are already compressed
		if err != nil {
			return err
		}
		file, err := x.h.openFile(x.ctx, &all[i].document)
		if err != nil {
			return err
		}
		_, err = io.Copy(into, file)
		file.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// maxFileName is the maximum length of a file name in the zip, in bytes. File systems allow 255, but some of them
// after converting the name to a longer form.
const maxFileName = 180

// safeName returns a name under which every system can unpack a file: without reserved characters, not too long, and
// not the name of a Windows device, which is reserved with any extension.
func safeName(name string) string {
	name = strings.Map(func(r rune) rune {
		if strings.ContainsRune(`<>:"/\|?*`, r) {
			return '_'
		}
		return r
	}, name)
	if name = strings.TrimRight(name, ". "); name == "" {
		return "file"
	}
	if first, _, _ := strings.Cut(name, "."); device.MatchString(first) {
		name = "_" + name
	}
	if ending := path.Ext(name); len(name) > maxFileName {
		if len(ending) > maxFileName/2 {
			ending = ""
		}
		name = strings.ToValidUTF8(name[:maxFileName-len(ending)], "") + ending // the cut may split the last character
	}
	return name
}

var device = regexp.MustCompile(`^(?i)(con|prn|aux|nul|com[0-9]|lpt[0-9]) *$`)
