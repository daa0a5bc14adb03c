package onboarding

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/labstack/echo/v4"
	"golang.org/x/net/idna"

	domain "github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/validation"
	"github.com/perpetua-exchange/perpetua/domain/webhook"
	"github.com/perpetua-exchange/perpetua/handlers/web/input"
	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/handlers/wire"
	"github.com/perpetua-exchange/perpetua/projections"
	rows "github.com/perpetua-exchange/perpetua/projections/onboarding"
	"github.com/perpetua-exchange/perpetua/streams/seal"
)

const webhooks = base + "/webhooks"

// webhookRoutes returns the routes of webhooks, deliveries and the feed.
func (h *Handler) webhookRoutes() []rest.Route {
	one := webhooks + "/:webhook_id"
	return []rest.Route{
		post(webhooks, h.createWebhook),
		get(webhooks, h.listWebhooks),
		remove(one, h.deleteWebhook),
		post(one+"/test", h.testWebhook),
		post(one+"/rotate", h.rotateWebhook),
		post(one+"/enable", h.enableWebhook),
		get(one+"/deliveries", h.listDeliveries),
		get(one+"/deliveries/:delivery_id", h.getDelivery),
		post(one+"/deliveries/:delivery_id/replay", h.replayDelivery),
		get(base+"/events", h.listEvents),
	}
}

func remove(path string, h echo.HandlerFunc) rest.Route { return rest.Delete(path, h, writers...) }

func (h *Handler) createWebhook(c echo.Context) error {
	body := rest.BodyOnly(c)
	payload := &domain.CreateWebhook{ID: rest.RequestOf(c).IDFor("webhook"), URL: readURL(body), All: true}
	if all := body.OptionalBool("include_all_events"); all.Set {
		payload.All = all.Value
	}
	if payload.All {
		body.Ignore("event_types") // any value is accepted
	} else {
		payload.Types = readTypes(body)
	}
	if err := body.Done(); err != nil {
		return err
	}
	var err error
	if payload.Key, err = h.newSigningKey(payload.ID); err != nil {
		return err
	}
	e, err := rest.Execute[*domain.WebhookCreated](c, h.journal, payload, body)
	if err != nil {
		return err
	}
	return created(c, wire.NewWebhook(&e.Webhook))
}

const (
	maxURL = 2048    // in characters
	secure = "https" // the scheme of webhooks
)

// readURL reads the webhook's URL, and writes its scheme in lower case (RFC 3986, section 3.1). Each connection checks the host's
// address.
func readURL(body *input.Form) string {
	text := body.String("url")
	if text == "" {
		return ""
	}
	if utf8.RuneCountInString(text) > maxURL {
		body.Add(validation.FieldError{Path: validation.At("url"), Kind: validation.StringTooLong, Args: []any{maxURL, "characters"}})
		return ""
	}
	u, err := url.Parse(text)
	var wrong string
	switch {
	case err != nil, strings.ContainsFunc(text, unicode.IsSpace):
		wrong = "the URL cannot be read"
	case u.Scheme != secure || !strings.HasPrefix(text[len(secure):], "://"):
		wrong = "the URL must begin with https://"
	case u.User != nil:
		wrong = "the URL must name no user and no password"
	case u.Hostname() == "" || strings.Contains(u.Hostname(), "%"):
		wrong = "the URL must name a host"
	case !isHost(u.Hostname()):
		wrong = "the URL's host must be a name with 1 to 63 characters between its dots and at most 253 in all, or an address"
	case u.Fragment != "" || strings.Contains(text, "#"):
		wrong = "the URL must have no fragment"
	case !isPort(u):
		wrong = "the URL's port must be a number from 1 to 65535"
	default:
		return secure + text[len(secure):]
	}
	body.Fault("url", validation.InvalidValue, wrong)
	return ""
}

// isHost reports whether a name or an address has the lengths that DNS allows (RFC 1035, 2.3.4). A dot may end it. The
// form of a name that is not ASCII counts, as the DNS has it.
func isHost(name string) bool {
	if strings.Contains(name, ":") { // an IPv6 address, which url.Parse has checked
		_, err := netip.ParseAddr(name)
		return err == nil
	}
	if strings.ContainsFunc(name, func(r rune) bool { return r > unicode.MaxASCII }) {
		ascii, err := idna.Lookup.ToASCII(name)
		if err != nil {
			return false
		}
		name = ascii
	}
	name = strings.TrimSuffix(name, ".")
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > 63 {
			return false
		}
	}
	return len(name) <= 253
}

func isPort(u *url.URL) bool {
	if u.Port() == "" {
		return !strings.HasSuffix(u.Host, ":")
	}
	n, err := strconv.ParseUint(u.Port(), 10, 16)
	return err == nil && n > 0
}

// readTypes reads the event types of a webhook and removes duplicates.
func readTypes(body *input.Form) []webhook.EventType {
	known := make([]string, 0, len(webhook.EventTypes()))
	for _, t := range webhook.EventTypes() {
		known = append(known, string(t))
	}
	given := body.OptionalEnums("event_types", known...)
	if wrong := !given.Set && body.Has("event_types"); len(given.Value) == 0 && !wrong { // an invalid list already has an error
		body.Add(validation.FieldError{Path: validation.At("event_types"), Kind: validation.ValueError,
			Message: "at least one type of event is needed where include_all_events is false"})
	}
	types := make([]webhook.EventType, 0, len(given.Value))
	for _, t := range given.Value {
		if !slices.Contains(types, webhook.EventType(t)) {
			types = append(types, webhook.EventType(t))
		}
	}
	return types
}

// newSigningKey generates a webhook's signing key and encrypts the private part.
func (h *Handler) newSigningKey(of scalar.ID) (domain.SigningKey, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return domain.SigningKey{}, err
	}
	sealed, err := h.cfg.Box.Seal(private.Seed(), seal.WebhookKey(of))
	return domain.SigningKey{KeyID: operation.NewID().String(), Public: public, Private: sealed}, err
}

// listWebhooks lists the webhooks of the caller's tenant, or of all tenants for operators and auditors, newest first.
func (h *Handler) listWebhooks(c echo.Context) error {
	query := rest.Query(c)
	n := rest.ReadNumbered(query)
	if err := query.Done(); err != nil {
		return err
	}
	var out rest.Items[wire.Webhook]
	err := h.rows.Read(c, func(ctx context.Context, db projections.DB) (int64, error) {
		found, total, asOf, err := rows.Webhooks(ctx, db, viewer(c), n.Size, n.Offset())
		shown := make([]wire.Webhook, len(found))
		for i := range found {
			shown[i] = wire.NewWebhook(&found[i].Webhook)
		}
		out = rest.NewItems(n, shown, total)
		return asOf, err
	})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, out)
}

// hook holds the webhook ID in the path and the form of a write without query and body.
type hook struct {
	id   scalar.ID
	form *input.Form
}

// hook reads the path of a write. If the request has an unexpected query or body and the webhook does not exist, it
// reports the missing webhook. Otherwise the rules check that the webhook exists, because they also answer a repeated
// request after a deletion.
func (h *Handler) hook(c echo.Context) (hook, error) {
	path := rest.Path(c)
	w := hook{id: path.ID("webhook_id")}
	malformed := path.Done() != nil
	w.form = rest.Query(c).Merge(path)
	err := w.form.Done()
	if err == nil {
		err = rest.BodyAbsent(c)
	}
	if err != nil && !malformed {
		if _, unknown := h.registration(c, w.id); unknown != nil {
			return w, unknown
		}
	}
	return w, err
}

// registration returns a webhook that the caller may see.
func (h *Handler) registration(c echo.Context, id scalar.ID) (w *domain.Webhook, err error) {
	err = h.view(c, func(s *domain.State) error {
		there, known := s.Webhook(id)
		if only := viewer(c).Tenant; !known || only != "" && only != there.Tenant {
			return problem.NotFound("WEBHOOK_NOT_FOUND", "There is no such webhook.")
		}
		w = there
		return nil
	})
	return w, err
}

func (h *Handler) deleteWebhook(c echo.Context) error {
	w, err := h.hook(c)
	if err != nil {
		return err
	}
	if _, err := rest.Execute[*domain.WebhookDeleted](c, h.journal, &domain.DeleteWebhook{ID: w.id}, w.form); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

func (h *Handler) testWebhook(c echo.Context) error {
	w, err := h.hook(c)
	if err != nil {
		return err
	}
	e, err := rest.Execute[*domain.DeliveryCreated](c, h.journal, &domain.TestWebhook{ID: w.id}, w.form)
	if err != nil {
		return err
	}
	return created(c, wire.Delivery{ID: e.ID, WebhookID: e.WebhookID, EventID: e.NoticeID, EventType: e.Type, Status: webhook.Pending,
		Created: e.Created, Attempts: []wire.Attempt{}})
}

func (h *Handler) rotateWebhook(c echo.Context) error {
	w, err := h.hook(c)
	if err != nil {
		return err
	}
	key, err := h.newSigningKey(w.id)
	if err != nil {
		return err
	}
	e, err := rest.Execute[*domain.RotationBegun](c, h.journal,
		&domain.RotateWebhook{ID: w.id, Key: key, Overlap: scalar.Time(h.cfg.KeyOverlap.Microseconds())}, w.form)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, wire.NewWebhook(&e.Webhook))
}

func (h *Handler) enableWebhook(c echo.Context) error {
	w, err := h.hook(c)
	if err != nil {
		return err
	}
	e, err := rest.Execute[*domain.WebhookEnabled](c, h.journal, &domain.EnableWebhook{ID: w.id}, w.form)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, wire.NewWebhook(&e.Webhook))
}
