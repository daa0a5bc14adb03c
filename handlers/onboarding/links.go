package onboarding

import (
	"bufio"
	"context"
	"crypto/hmac"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/labstack/echo/v4"

	domain "github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/handlers/wire"
	"github.com/perpetua-exchange/perpetua/projections"
	view "github.com/perpetua-exchange/perpetua/projections/onboarding"
	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/files"
	"github.com/perpetua-exchange/perpetua/streams/seal"
)

// filesAt is the path prefix of downloads by link, which need no token.
const filesAt = base + "/files"

// link is the content of a download link. A signature, which every node can verify, protects it from changes.
type link struct {
	document scalar.ID // also determines the key under which the file is stored, forever
	expires  int64     // Unix seconds
	// at is the sequence at which the link was created. A node with an older fold waits.
	at int64
	// restricted is set in links created for operators. Only operators may see restricted owners.
	restricted bool
}

// sign returns the signature of a link for an HTTP method.
func (l link) sign(key []byte, method string) []byte {
	return seal.MAC(key, fmt.Appendf(nil, "%s %s %d %d %t", method, l.document, l.expires, l.at, l.restricted))
}

// query returns the canonical query string of the link.
func (l link) query(key []byte) string {
	query := url.Values{"expires": {strconv.FormatInt(l.expires, 10)}, "at": {strconv.FormatInt(l.at, 10)},
		"signature": {base64.RawURLEncoding.EncodeToString(l.sign(key, http.MethodGet))}}
	if l.restricted {
		query.Set("restricted", "true")
	}
	return query.Encode()
}

func (l link) url(c echo.Context, key []byte) string {
	return (&url.URL{Scheme: c.Scheme(), Host: c.Request().Host, Path: filesAt + "/" + l.document.String(), RawQuery: l.query(key)}).String()
}

// readLink returns the content of a link. It returns false if the signature is invalid or the link has expired.
func readLink(c echo.Context, key []byte, now time.Time) (link, bool) {
	query := c.QueryParams()
	id, badID := scalar.ParseID(rest.Param(c, "document_id"))
	expires, badTime := strconv.ParseInt(query.Get("expires"), 10, 64)
	at, badAt := strconv.ParseInt(query.Get("at"), 10, 64)
	signature, badText := base64.RawURLEncoding.Strict().DecodeString(query.Get("signature"))
	l := link{id, expires, at, query.Get("restricted") == "true"}
	// A link for GET is also valid for HEAD.
	ours := hmac.Equal(signature, l.sign(key, http.MethodGet)) && query.Encode() == l.query(key)
	return l, ours && errors.Join(badID, badTime, badAt, badText) == nil && now.Unix() < expires
}

// linkKey returns the key that signs links of this venue in its current epoch. The master key alone would not do: a copy of
// the venue has the same one. linkKey returns an error until the venue has read its fence.
func (h *Handler) linkKey() ([]byte, error) {
	if h.cfg.Audience == nil {
		return h.linkMaster, nil
	}
	audience := h.cfg.Audience().Name
	if audience == "" {
		return nil, problem.Unavailable("SOURCE_UNAVAILABLE", "The service has not started yet.", time.Second)
	}
	return seal.MAC(h.linkMaster, []byte(audience)), nil
}

// linkDocument creates a link to a document's file.
func (h *Handler) linkDocument(c echo.Context) error {
	t, err := h.shownBare(c, "document_id")
	if err != nil {
		return err
	}
	key, err := h.linkKey()
	if err != nil {
		return err
	}
	l := link{document: t.ids["document_id"], expires: h.cfg.Now().Add(h.cfg.LinkLifetime).Unix(), restricted: t.owner.State == owner.Restricted}
	err = h.viewAt(c, func(s *domain.State, at int64) error {
		l.at = at
		if d, known := s.Document(l.document); !known || d.Ref != t.Ref {
			return documentNotFound()
		}
		return nil
	})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, wire.DownloadLink{URL: l.url(c, key), ExpiresIn: int64(h.cfg.LinkLifetime / time.Second)})
}

// download responds with a file to any client that has a link to it.
func (h *Handler) download(c echo.Context) error {
	key, err := h.linkKey()
	if err != nil {
		return err
	}
	l, good := readLink(c, key, h.cfg.Now())
	if !good {
		return problem.Forbidden("The link is not one of this service, or it has expired.")
	}
	d, tenant, name, err := h.linked(c, l)
	if err != nil {
		return err
	}
	if c.Request().Method != http.MethodHead {
		leave, err := h.downloads.Take(c.Request().Context(), tenant)
		if err != nil {
			return err
		}
		defer leave()
	}
	head := c.Response().Header()
	head.Set(echo.HeaderContentType, d.Format.MediaType())
	head.Set(echo.HeaderContentLength, strconv.FormatInt(d.Size, 10))
	head.Set(echo.HeaderContentDisposition, attachment(name))
	// Ranges are not supported: the file's integrity is verified only at its end.
	head.Set("Accept-Ranges", "none")
	guard(head)
	if c.Request().Method == http.MethodHead {
		return c.NoContent(http.StatusOK)
	}
	return h.sendFile(c, d)
}

// guard sets headers that make browsers save the response without displaying, executing or caching it.
func guard(head http.Header) {
	head.Set(echo.HeaderXContentTypeOptions, "nosniff")
	head.Set(echo.HeaderContentSecurityPolicy, "default-src 'none'; sandbox")
	head.Set(echo.HeaderCacheControl, "private, no-store")
	head.Set(echo.HeaderReferrerPolicy, "no-referrer")
}

// linked returns the document of a link, its tenant and its decrypted file name.
func (h *Handler) linked(c echo.Context, l link) (d *domain.Document, tenant, name string, err error) {
	waited := h.awaitFold(c, l.at)
	err = rest.View(c, journalName, h.cfg.Onboarding, func(s *domain.State, _ int64) error {
		found, known := s.Document(l.document)
		switch {
		case !known && waited != nil:
			return waited
		case !known:
			return documentNotFound()
		}
		o, known := s.Owner(found.Ref)
		if !known || o.State != owner.Active && (o.State != owner.Restricted || !l.restricted) {
			return documentNotFound()
		}
		d, tenant = found, o.Tenant
		return nil
	})
	if err != nil {
		return nil, "", "", err
	}
	row, err := one(c, h, func(ctx context.Context, db projections.DB) (view.Document, bool, int64, error) {
		return view.OneDocument(ctx, db, view.Operator, d.Ref, d.ID)
	}, documentNotFound)
	if err != nil {
		return nil, "", "", err
	}
	err = h.open(c.Request().Context(), d.Ref, seal.DocumentName(d.Ref, d.ID), row.Name, &name)
	return d, tenant, name, err
}

// sendFile streams the file of a document.
func (h *Handler) sendFile(c echo.Context, d *domain.Document) error {
	file, err := h.openFile(c.Request().Context(), d)
	if err != nil {
		head := c.Response().Header() // these headers describe the file and not the error response
		for _, name := range []string{echo.HeaderContentLength, echo.HeaderContentDisposition, "Accept-Ranges"} {
			head.Del(name)
		}
		return err
	}
	defer file.Close()
	return streamed(c, func(w io.Writer) error {
		_, err := io.Copy(w, file)
		return err
	})
}

// openFile opens the file of a document and reads its first bytes, because a missing file is detected only then.
func (h *Handler) openFile(ctx context.Context, d *domain.Document) (io.ReadCloser, error) {
	f, err := h.cfg.Files.Open(ctx, files.File{Ref: d.Ref, ID: d.ID, Source: d.Source, SHA256: d.SHA256, Size: d.Size})
	if err == nil {
		first := bufio.NewReaderSize(f, 64<<10)
		if _, err = first.Peek(1); err == nil {
			return struct {
				io.Reader
				io.Closer
			}{first, f}, nil
		}
		f.Close()
	}
	switch {
	case errors.Is(err, seal.ErrDestroyed), errors.Is(err, seal.ErrAway), errors.Is(err, seal.ErrMissing):
		return nil, sealing(d.Ref, err)
	case errors.Is(err, blob.ErrSilent):
		return nil, problem.Unavailable("FILES_UNAVAILABLE", "Files can't be read now.", time.Second).Because(err)
	}
	return nil, fmt.Errorf("the file of document %s: %w", d.ID, err)
}

// pieceLimit is how long a client may take to read a piece of a file.
const pieceLimit = time.Minute

// paced is a response writer that renews the client's deadline for each piece.
type paced struct {
	http.ResponseWriter
	control *http.ResponseController
	set     time.Time
}

func (p *paced) Write(b []byte) (int, error) {
	if now := time.Now(); now.Sub(p.set) > time.Second {
		if err := p.control.SetWriteDeadline(now.Add(pieceLimit)); err != nil && !errors.Is(err, http.ErrNotSupported) {
			return 0, err
		}
		p.set = now
	}
	return p.ResponseWriter.Write(b)
}

// streamed responds with 200 and the output of write. The response is not compressed, because large parts are already
// compressed formats. An error during the response aborts the connection.
func streamed(c echo.Context, write func(w io.Writer) error) error {
	err := write(&paced{ResponseWriter: c.Response(), control: http.NewResponseController(c.Response())})
	if err != nil && c.Response().Committed {
		panic(http.ErrAbortHandler)
	}
	return err
}

// attachment returns a Content-Disposition that makes the client save the file under a name (RFC 6266). It contains
// the full name and, for old clients, a name reduced to ASCII.
func attachment(name string) string {
	var plain, full strings.Builder
	for _, r := range name {
		if r < ' ' || r > '~' || strings.ContainsRune(`"\%;`, r) {
			plain.WriteByte('_')
		} else {
			plain.WriteRune(r)
		}
	}
	for _, b := range []byte(name) {
		// RFC 5987, section 3.2.1.
		if r := rune(b); r < 0x80 && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("-._~", r)) {
			full.WriteByte(b)
		} else {
			fmt.Fprintf(&full, "%%%02X", b)
		}
	}
	return fmt.Sprintf(`attachment; filename="%s"; filename*=UTF-8''%s`, plain.String(), full.String())
}
