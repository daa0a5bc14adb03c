package upload_test

import (
	"archive/zip"
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/document/format/formattest"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/onboarding/upload"
	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/clamd"
	"github.com/perpetua-exchange/perpetua/streams/clamd/clamdtest"
	"github.com/perpetua-exchange/perpetua/streams/files"
	"github.com/perpetua-exchange/perpetua/streams/seal"
)

const mib = 1 << 20

var anna = owner.Ref{Type: owner.PersonType, ID: scalar.ID{1}}

// server receives uploads and tells what it took.
type server struct {
	url    string
	folder string
	store  *files.Store
	owners *seal.Owners
	done   chan error // of each request
}

func serve(t testing.TB, scanner *clamd.Scanner) *server {
	t.Helper()
	box, err := seal.New(make([]byte, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	s := &server{folder: t.TempDir(), done: make(chan error, 100)}
	if s.owners, err = seal.OpenOwners(t.Context(), "mem://", box); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.owners.Close() })
	if err := s.owners.Create(t.Context(), anna.String()); err != nil {
		t.Fatal(err)
	}
	bucket, err := blob.Open(t.Context(), blob.URLOf(s.folder))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { bucket.Close() })
	s.store = files.New(bucket, s.owners, "")
	receiver := upload.New(s.store, scanner)
	e, err := rest.New(rest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	e.POST("/api/v1/documents", func(c echo.Context) error {
		u, err := receiver.Receive(c, anna, operation.NewID())
		s.done <- err
		if err != nil {
			return upload.Refuse(c, err)
		}
		return c.JSON(http.StatusCreated, map[string]any{"name": u.Name, "category": u.Category, "orientation": u.Orientation, "format": u.Format,
			"size": u.File.Size, "said": hex.EncodeToString(u.Content()), "until": u.ValidUntil, "source": u.File.Source})
	})
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	s.url = server.URL + "/api/v1/documents"
	return s
}

// lies returns what lies in the bucket.
func (s *server) lies(t *testing.T) (all []string) {
	t.Helper()
	err := filepath.WalkDir(s.folder, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) { // it is being written, and has another name by now, or none
			return nil
		}
		if err == nil && !entry.IsDir() {
			all = append(all, path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	return all
}

// begun waits until some of a file lies in the folder.
func (s *server) begun(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); len(s.lies(t)) == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Error("nothing was written for a minute")
			return
		}
	}
}

// part is a part of a body. A file has a name.
type part struct {
	name, filename string
	content        string
	header         textproto.MIMEHeader // instead of the usual one
}

func field(name, content string) part { return part{name: name, content: content} }
func file(filename string, content any) part {
	return part{"file", filename, fmt.Sprintf("%s", content), nil}
}

// body returns parts as they are sent.
func body(boundary string, parts ...part) (contentType string, content []byte) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	_ = w.SetBoundary(boundary)
	for _, p := range parts {
		var into io.Writer
		switch {
		case p.header != nil:
			into, _ = w.CreatePart(p.header)
		case p.filename != "":
			into, _ = w.CreateFormFile(p.name, p.filename)
		default:
			into, _ = w.CreateFormField(p.name)
		}
		_, _ = io.WriteString(into, p.content)
	}
	_ = w.Close()
	return w.FormDataContentType(), b.Bytes()
}

// dial opens a connection for requests written byte by byte. It is closed at the end of the test.
func (s *server) dial(t *testing.T) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(strings.TrimSuffix(s.url, "/api/v1/documents"), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	return c
}

// send sends a body and returns the status and the answer.
func (s *server) send(t testing.TB, contentType string, content io.Reader, headers ...string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url, content)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", contentType)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return a.StatusCode, strings.TrimSpace(string(text))
}

func (s *server) sendParts(t *testing.T, parts ...part) (int, string) {
	t.Helper()
	contentType, content := body("b", parts...)
	return s.send(t, contentType, bytes.NewReader(content))
}

// padded is a PDF of a size.
func padded(size int) string {
	end := "\nstartxref\n5\n%%EOF\n"
	return "%PDF-1.4\n" + strings.Repeat("x", size-len("%PDF-1.4\n")-len(end)) + end
}

func workbook(more ...string) string {
	return string(formattest.Zip(zip.Deflate, append(workbookParts(), more...)...))
}

// workbookParts are those that every workbook has.
func workbookParts() []string {
	return []string{formattest.ContentTypes, formattest.WorkbookTypes, "xl/workbook.xml", "<workbook/>"}
}

const csv = "day,amount\n2026-01-01,5\n"

func TestTaken(t *testing.T) {
	s := serve(t, nil)
	for name, test := range map[string]struct {
		parts []part
		want  string
	}{
		"a file alone":                       {[]part{file("passport.pdf", formattest.PDF())}, `"category":"undetermined","format":"pdf","name":"passport.pdf","orientation":"undetermined"`},
		"everything":                         {[]part{field("category", "id_document"), field("orientation", "front"), field("valid_until", "2030-01-01T00:00:00+01:00"), file("a.jpg", formattest.JPEG())}, `"until":"2029-12-31T23:00:00.000000Z"`},
		"the file first":                     {[]part{file("a.csv", csv), field("category", "bank_statment")}, `"category":"bank_statement","format":"csv"`}, //nolint:misspell // as it is sent
		"the category first":                 {[]part{field("category", "kyt_report"), file("a.xlsx", workbook())}, `"format":"xlsx"`},
		"empty fields":                       {[]part{field("category", ""), field("orientation", ""), field("valid_until", ""), file("a.png", formattest.PNG())}, `"category":"undetermined","format":"png"`},
		"another ending than it is of":       {[]part{file("a.exe", formattest.WebP())}, `"format":"webp","name":"a.exe"`},
		"a photo of a phone":                 {[]part{file("a.heic", formattest.HEIC())}, `"format":"heic"`},
		"just as large as is taken":          {[]part{file("a.pdf", padded(20*mib))}, `"size":20971520`},
		"a path":                             {[]part{file("/home/anna/../../etc/passwd", formattest.PDF())}, `"name":"passwd"`},
		"a path of another system":           {[]part{{header: textproto.MIMEHeader{"Content-Disposition": {`form-data; name="file"; filename="C:\scans\pass.pdf"`}}, content: string(formattest.PDF())}}, `"name":"pass.pdf"`},
		"a name that is a path only":         {[]part{file("../..", formattest.PDF())}, `"name":"file"`},
		"a name with a backslash at its end": {[]part{{header: textproto.MIMEHeader{"Content-Disposition": {`form-data; name="file"; filename="pass.pdf\"`}}, content: string(formattest.PDF())}}, `"name":"pass.pdf"`},
		"backslashes and a parameter":        {[]part{{header: textproto.MIMEHeader{"Content-Disposition": {`form-data; filename="C:\scans\a.pdf\"; name="file"`}}, content: string(formattest.PDF())}}, `"name":"a.pdf"`},
		"a quote with a backslash":           {[]part{{header: textproto.MIMEHeader{"Content-Disposition": {`form-data; name="file"; filename="a \"1\".pdf"`}}, content: string(formattest.PDF())}}, `"name":"a \"1\".pdf"`},
		"a name in its extended form":        {[]part{{header: textproto.MIMEHeader{"Content-Disposition": {`form-data; name="file"; filename*=UTF-8''%C3%9Cbersicht%2F..%2Fa.pdf`}}, content: string(formattest.PDF())}}, `"name":"a.pdf"`},
		"a long name":                        {[]part{file(strings.Repeat("é", 300), formattest.PDF())}, `"name":"` + strings.Repeat("é", 255) + `"`},
		"a name that shows another one":      {[]part{file("invoice\u202efdp.exe", formattest.PDF())}, `"name":"invoicefdp.exe"`},
		"a file with an empty name":          {[]part{{header: textproto.MIMEHeader{"Content-Disposition": {`form-data; name="file"; filename=""`}}, content: string(formattest.PDF())}}, `"name":"file"`},
		"a file without a name":              {[]part{{header: textproto.MIMEHeader{"Content-Disposition": {`form-data; name="file"`}, "Content-Type": {"application/pdf"}}, content: string(formattest.PDF())}}, `"name":"file"`},
	} {
		if status, answer := s.sendParts(t, test.parts...); status != http.StatusCreated || !strings.Contains(answer, test.want) {
			t.Errorf("%s: %d %.300s", name, status, answer)
		}
	}
}

// TestRefused sends what is to be refused, with the answer to each. Nothing of it is left in the bucket.
func TestRefused(t *testing.T) {
	s := serve(t, nil)
	pdf, png := string(formattest.PDF()), string(formattest.PNG())
	const (
		notTaken = `415 {"detail":"UNSUPPORTED_MEDIA_TYPE"}`
		tooLarge = `413 {"detail":"DOCUMENT_TOO_LARGE"}`

		isText = "Value error, the field must be a file, and this part is text: it has neither a filename nor the type of a file"
	)
	fault := func(kind, of, message, input string) string {
		return fmt.Sprintf(`422 {"detail":[{"type":%q,"loc":["body",%q],"msg":%q,"input":%s}]}`, kind, of, message, input)
	}
	bomb := string(formattest.Bomb(300, "xl/worksheets/sheet1.xml", workbookParts()...))
	for name, test := range map[string]struct {
		parts []part
		want  string
	}{
		// Disguised.
		"a program as a picture":            {[]part{file("selfie.png", "MZ\x90\x00"+strings.Repeat("\x00", 1000))}, notTaken},
		"an ELF as a PDF":                   {[]part{file("a.pdf", "\x7fELF"+strings.Repeat("\x00", 1000))}, notTaken},
		"markup as a table":                 {[]part{field("category", "bank_statement"), file("a.csv", "<script>alert(1)</script>,b\n")}, notTaken},
		"a script as text":                  {[]part{file("a.csv", "#!/bin/sh\nrm -rf /\n")}, notTaken},
		"a picture of another kind":         {[]part{file("a.png", "GIF89a"+strings.Repeat("x", 100))}, notTaken},
		"a word document as a workbook":     {[]part{field("category", "bank_statement"), file("a.xlsx", formattest.Zip(zip.Deflate, formattest.ContentTypes, "<Types/>", "word/document.xml", "x"))}, notTaken},
		"any archive as a workbook":         {[]part{field("category", "bank_statement"), file("a.xlsx", formattest.Zip(zip.Deflate, "a.exe", "MZ"))}, notTaken},
		"a workbook with a program":         {[]part{field("category", "bank_statement"), file("a.xlsx", workbook("xl/vbaProject.bin", "x"))}, notTaken},
		"a signature and nothing else":      {[]part{file("a.png", "\x89PNG\r\n\x1a\n")}, notTaken},
		"a page behind a picture":           {[]part{file("a.png", png+"<html>")}, notTaken},
		"a table where none is taken":       {[]part{field("category", "id_document"), file("a.csv", csv)}, notTaken},
		"the same, and the category behind": {[]part{file("a.xlsx", workbook()), field("category", "id_document")}, notTaken},
		"a table without a category":        {[]part{file("a.csv", csv)}, notTaken},
		// Bombs and tricks in workbooks.
		"a workbook that unpacks to 300 MiB":   {[]part{field("category", "bank_statement"), file("a.xlsx", bomb)}, notTaken},
		"a part that leads out of its folder":  {[]part{field("category", "bank_statement"), file("a.xlsx", workbook("../../../etc/cron.d/x", "x"))}, notTaken},
		"a part with an absolute name":         {[]part{field("category", "bank_statement"), file("a.xlsx", workbook("/etc/passwd", "x"))}, notTaken},
		"a part by the path of another system": {[]part{field("category", "bank_statement"), file("a.xlsx", workbook(`..\..\x`, "x"))}, notTaken},
		// Cut.
		"an empty file":                  {[]part{file("a.pdf", "")}, notTaken},
		"half a picture":                 {[]part{file("a.png", png[:len(png)/2])}, notTaken},
		"a picture without its end":      {[]part{file("a.jpg", formattest.JPEG()[:len(formattest.JPEG())-2])}, notTaken},
		"a PDF without its end":          {[]part{file("a.pdf", pdf[:len(pdf)-10])}, notTaken},
		"half a workbook":                {[]part{field("category", "bank_statement"), file("a.xlsx", workbook()[:200])}, notTaken},
		"half a photo":                   {[]part{file("a.heic", formattest.HEIC()[:len(formattest.HEIC())-50])}, notTaken},
		"a table whose last line is cut": {[]part{field("category", "bank_statement"), file("a.csv", csv+"2026")}, notTaken},
		// Too large.
		"a byte more than is taken":   {[]part{file("a.pdf", padded(20*mib+1))}, tooLarge},
		"of no kind, and too large":   {[]part{file("a.bin", strings.Repeat("x", 20*mib+1))}, tooLarge},
		"with a fault, and too large": {[]part{field("category", "none"), file("a.pdf", padded(20*mib+1))}, tooLarge},
		"a field that is too large":   {[]part{field("other", strings.Repeat("x", mib)), file("a.pdf", pdf)}, `413 {"detail":"BODY_TOO_LARGE"}`},
		// Faults of fields, of which all are told.
		"no file":                         {[]part{field("category", "poa")}, fault("missing", "file", "Field required", "null")},
		"no parts that say what they are": {[]part{{header: textproto.MIMEHeader{}, content: "x"}}, `422 {"detail":[{"type":"multipart_invalid","loc":["body"],"msg":"Multipart decode error: a part does not say which field it is","input":null}]}`},
		"an orientation that is not":      {[]part{field("orientation", "left"), file("a.pdf", pdf)}, fault("enum", "orientation", "Input should be 'front', 'back' or 'undetermined'", `"left"`)},
		"a control character in a field":  {[]part{field("orientation", "front\n"), file("a.pdf", pdf)}, fault("value_error", "orientation", "Value error, the text must not hold control characters", `"front\n"`)},
		"bytes that are no text":          {[]part{field("orientation", "\xff"), file("a.pdf", pdf)}, fault("string_unicode", "orientation", "Input should be a valid string, unable to parse raw data as a unicode string", "null")},
		"a field that is too long":        {[]part{field("orientation", strings.Repeat("x", 2000)), file("a.pdf", pdf)}, fault("string_too_long", "orientation", "String should have at most 1024 bytes", "null")},
		"a day for a time":                {[]part{field("valid_until", "2030-01-01"), file("a.pdf", pdf)}, fault("value_error", "valid_until", "Value error, the timestamp must be one of RFC 3339, like 2006-01-02T15:04:05.000000Z (a + in a query is written %2B)", `"2030-01-01"`)},
		"a field that is not":             {[]part{field("owner_id", "x"), file("a.pdf", pdf)}, fault("extra_forbidden", "owner_id", "Extra inputs are not permitted", "null")},
		"a text field for the file":       {[]part{field("category", "poa"), field("file", pdf)}, fault("value_error", "file", isText, "null")},
		"a large text for the file":       {[]part{field("file", strings.Repeat("x", mib)), field("x", "")}, `422 {"detail":[{"type":"value_error","loc":["body","file"],"msg":"` + isText + `","input":null},{"type":"extra_forbidden","loc":["body","x"],"msg":"Extra inputs are not permitted","input":null}]}`},
		"a text larger than any file":     {[]part{field("file", strings.Repeat("x", 20*mib+1))}, tooLarge},
		"two files":                       {[]part{file("a.pdf", pdf), file("b.pdf", pdf)}, fault("value_error", "file", "Value error, the field is given more than once", "null")},
		"a file by another encoding":      {[]part{{header: textproto.MIMEHeader{"Content-Disposition": {`form-data; name="file"; filename="a.pdf"`}, "Content-Transfer-Encoding": {"base64"}}, content: "JVBERi0="}}, fault("value_error", "file", "Value error, the field must be sent as it is, without a transfer encoding", "null")},
		"a control character in the name": {[]part{{header: textproto.MIMEHeader{"Content-Disposition": {`form-data; name="file"; filename*=UTF-8''a%0Ab.pdf`}}, content: pdf}}, fault("value_error", "file", "Value error, the name of the file must be text without control characters", "null")},
		"a zero byte in the name":         {[]part{{header: textproto.MIMEHeader{"Content-Disposition": {`form-data; name="file"; filename*=UTF-8''a.pdf%00.exe`}}, content: pdf}}, fault("value_error", "file", "Value error, the name of the file must be text without control characters", "null")},
		"a name that is no text":          {[]part{file("a\xff.pdf", pdf)}, fault("value_error", "file", "Value error, the name of the file must be text without control characters", "null")},
		"many faults": {[]part{field("orientation", "up"), field("valid_until", "soon"), field("x", "")},
			`422 {"detail":[{"type":"missing","loc":["body","file"],"msg":"Field required","input":null},{"type":"enum","loc":["body","orientation"],"msg":"Input should be 'front', 'back' or 'undetermined'","input":"up"},{"type":"value_error","loc":["body","valid_until"],"msg":"Value error, the timestamp must be one of RFC 3339, like 2006-01-02T15:04:05.000000Z (a + in a query is written %2B)","input":"soon"},{"type":"extra_forbidden","loc":["body","x"],"msg":"Extra inputs are not permitted","input":null}]}`},
	} {
		status, answer := s.sendParts(t, test.parts...)
		if got := fmt.Sprint(status, " ", answer); got != test.want {
			t.Errorf("%s: %.500s", name, got)
		}
		if left := s.lies(t); len(left) > 0 {
			t.Errorf("%s: %q is left", name, left)
		}
	}
	if status, answer := s.sendParts(t, field("category", "passport"), file("a.pdf", pdf)); status != 422 ||
		!strings.HasPrefix(answer, `{"detail":[{"type":"enum","loc":["body","category"],"msg":"Input should be 'id_document', 'residence_permit', `) {
		t.Errorf("a category that is not: %d %.200s", status, answer)
	}
}

// TestBadBodies sends what can't be read as parts.
func TestBadBodies(t *testing.T) {
	s := serve(t, nil)
	contentType, whole := body("b", file("a.pdf", formattest.PDF()))
	malformed := `422 {"detail":[{"type":"multipart_invalid","loc":["body"],"msg":"Multipart decode error: `
	for name, test := range map[string]struct {
		contentType string
		content     []byte
		headers     []string
		want        string
	}{
		"JSON":                  {"application/json", []byte("{}"), nil, `415 {"detail":"UNSUPPORTED_MEDIA_TYPE"}`},
		"the file by itself":    {"application/pdf", formattest.PDF(), nil, `415 {"detail":"UNSUPPORTED_MEDIA_TYPE"}`},
		"a form of another way": {"application/x-www-form-urlencoded", []byte("file=x"), nil, `415 {"detail":"UNSUPPORTED_MEDIA_TYPE"}`},
		"no boundary":           {"multipart/form-data", whole, nil, malformed + `the boundary`},
		"another boundary":      {"multipart/form-data; boundary=c", whole, nil, malformed + `it does not end`},
		"nothing":               {contentType, nil, nil, malformed + `it does not end`},
		"cut":                   {contentType, whole[:len(whole)-20], nil, malformed + `it does not end`},
		"without its last line": {contentType, whole[:len(whole)-6], nil, malformed + `it does not end`},
		"compressed":            {contentType, whole, []string{"Content-Encoding", "gzip"}, `415 {"detail":"UNSUPPORTED_CONTENT_ENCODING"}`},
		"a head that is none":   {contentType, []byte("--b\r\nfile\r\n\r\nx\r\n--b--\r\n"), nil, malformed},
		"a head without end":    {contentType, append([]byte("--b\r\nX: "), bytes.Repeat([]byte("x"), mib)...), nil, `413 {"detail":"BODY_TOO_LARGE"}`},
		"a thousand parts":      {contentType, bytes.Repeat([]byte("--b\r\nContent-Disposition: form-data; name=\"x\"\r\n\r\n\r\n"), 1000), nil, malformed + `it has more than 100 parts`},
	} {
		status, answer := s.send(t, test.contentType, bytes.NewReader(test.content), test.headers...)
		if got := fmt.Sprint(status, " ", answer); !strings.HasPrefix(got, test.want) {
			t.Errorf("%s: %.300s", name, got)
		}
		if left := s.lies(t); len(left) > 0 {
			t.Errorf("%s: %q is left", name, left)
		}
	}
}

// endless is a body that never ends, unless nobody reads it any more.
type endless struct {
	head io.Reader
	sent int64
}

func (e *endless) Read(b []byte) (int, error) {
	n, err := e.head.Read(b)
	if err == io.EOF {
		n, err = len(b), nil
		clear(b)
	}
	e.sent += int64(n)
	return n, err
}

// TestTheSizeIsToldAsSoonAsItIsPassed sends more than is taken, without an end, and gets its answer all the same.
func TestTheSizeIsToldAsSoonAsItIsPassed(t *testing.T) {
	s := serve(t, nil)
	in := &endless{head: strings.NewReader("--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\n%PDF-1.4\n")}
	if status, answer := s.send(t, "multipart/form-data; boundary=b", in); status != 413 || answer != `{"detail":"DOCUMENT_TOO_LARGE"}` {
		t.Errorf("%d %s", status, answer)
	}
	// Who says so before and asks is told before anything is sent.
	c := s.dial(t)
	fmt.Fprintf(c, "POST /api/v1/documents HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: 30000000\r\nExpect: 100-continue\r\n\r\n")
	head := make([]byte, len("HTTP/1.1 413"))
	if _, err := io.ReadFull(c, head); err != nil || string(head) != "HTTP/1.1 413" {
		t.Errorf("%q, %v", head, err)
	}
}

// TestAConnectionThatWillBeClosedSaysSo refuses bodies, and reads in the answer whether the connection takes another request.
func TestAConnectionThatWillBeClosedSaysSo(t *testing.T) {
	s := serve(t, nil)
	text := func(size int64) io.Reader {
		return io.LimitReader(&endless{head: strings.NewReader("--b\r\n")}, size)
	}
	for _, tt := range []struct {
		name   string
		body   io.Reader
		length int64 // -1 if it is not told
		closed bool
	}{
		{"a body that is read to its end", text(20 * mib), 20 * mib, false},
		{"a body that is too long to be read", text(30 * mib), 30 * mib, true},
		{"a body of unknown length", text(mib), -1, true},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url, tt.body)
		if err != nil {
			t.Fatal(err)
		}
		r.ContentLength = tt.length
		r.Header.Set("Content-Type", "multipart/form-data; boundary=b")
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		if answer.StatusCode < 400 || answer.Close != tt.closed {
			t.Errorf("%s: status %d, closed %t", tt.name, answer.StatusCode, answer.Close)
		}
		answer.Body.Close()
	}
	// One write holds the last chunk as well, so that the server reads the end of the body with its content.
	c := s.dial(t)
	fmt.Fprint(c, "POST /api/v1/documents HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=b\r\nTransfer-Encoding: chunked\r\n\r\n7\r\n--b--\r\n\r\n0\r\n\r\n")
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	if answer.StatusCode < 400 || answer.Close {
		t.Errorf("a body of unknown length that was read to its end: status %d, closed %t", answer.StatusCode, answer.Close)
	}
}

// TestAClientThatGoesAwayLeavesNothing cuts the connection in the middle of a file.
func TestAClientThatGoesAwayLeavesNothing(t *testing.T) {
	s := serve(t, nil)
	c := s.dial(t)
	fmt.Fprintf(c, "POST /api/v1/documents HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: 10000000\r\n\r\n")
	fmt.Fprintf(c, "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\n%s", padded(4 * mib)[:3*mib])
	s.begun(t)
	c.Close()
	if err := <-s.done; err == nil {
		t.Error("it was taken")
	}
	if left := s.lies(t); len(left) > 0 {
		t.Errorf("%q is left", left)
	}
}

// TestTheSameRequest holds what requests say: the same for the same parts, whatever is between them and in whichever order.
func TestTheSameRequest(t *testing.T) {
	s := serve(t, nil)
	said := func(boundary string, parts ...part) string {
		contentType, content := body(boundary, parts...)
		status, answer := s.send(t, contentType, bytes.NewReader(content), "Idempotency-Key", "k")
		_, text, _ := strings.Cut(answer, `"said":"`)
		text, _, _ = strings.Cut(text, `"`)
		if status != 201 || text == "" {
			t.Fatalf("%d %s", status, answer)
		}
		return text
	}
	a, b := file("a.pdf", formattest.PDF()), field("category", "poa")
	first := said("one", a, b)
	for name, parts := range map[string][]part{"the same": {a, b}, "in another order": {b, a}} {
		if said("two", parts...) != first {
			t.Errorf("%s is another", name)
		}
	}
	for name, parts := range map[string][]part{"another name": {file("b.pdf", formattest.PDF()), b}, "another file": {file("a.pdf", formattest.PNG()), b},
		"another category": {a, field("category", "cv")}, "one field less": {a}, "one more": {a, b, field("orientation", "")}} {
		if said("one", parts...) == first {
			t.Errorf("%s is the same", name)
		}
	}
}

func TestTheScanner(t *testing.T) {
	marked := strings.Replace(padded(mib), "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", clamdtest.Marker, 1)
	t.Run("the real one", func(t *testing.T) {
		s := serve(t, clamdtest.Start(t).Scanner(t))
		if status, answer := s.sendParts(t, file("a.pdf", marked)); status != 422 || answer != `{"detail":"DOCUMENT_INFECTED"}` || len(s.lies(t)) > 0 {
			t.Errorf("infected: %d %s, %q is left", status, answer, s.lies(t))
		}
		if status, answer := s.sendParts(t, file("a.pdf", padded(20*mib))); status != 201 {
			t.Errorf("clean: %d %s", status, answer)
		}
	})
	daemon := func(t *testing.T, answer func(net.Conn)) *clamd.Scanner {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go func() { defer c.Close(); answer(c) }()
			}
		}()
		scanner, err := clamd.New("tcp://"+l.Addr().String(), clamd.Limits{Dial: 10 * time.Second, Write: 10 * time.Second, Verdict: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		return scanner
	}
	for name, answer := range map[string]func(net.Conn){
		"away":    func(c net.Conn) {},
		"silent":  func(c net.Conn) { _, _ = io.Copy(io.Discard, c) },
		"cut off": func(c net.Conn) { _, _ = io.CopyN(io.Discard, c, 1000) },
		"garbage": func(c net.Conn) { fmt.Fprint(c, "HTTP/1.1 400 Bad Request\r\n\r\n\x00"); _, _ = io.Copy(io.Discard, c) },
		"an error": func(c net.Conn) {
			fmt.Fprint(c, "INSTREAM size limit exceeded. ERROR\x00")
			_, _ = io.Copy(io.Discard, c)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, daemon(t, answer))
			if status, answer := s.sendParts(t, file("a.pdf", padded(4*mib))); status != 503 || answer != `{"detail":"SCANNER_UNAVAILABLE"}` || len(s.lies(t)) > 0 {
				t.Errorf("%d %s, %q is left", status, answer, s.lies(t))
			}
			if status, answer := s.sendParts(t, file("a.pdf", "no PDF")); status != 415 {
				t.Errorf("what is refused anyway: %d %s", status, answer)
			}
		})
	}
}

// TestAnErasedOwnersFileIsNotKept destroys the key while a file comes in.
func TestAnErasedOwnersFileIsNotKept(t *testing.T) {
	s := serve(t, nil)
	in, out := io.Pipe()
	go func() {
		fmt.Fprintf(out, "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\n%s", padded(4 * mib)[:3*mib])
		s.begun(t)
		if err := s.owners.Destroy(context.Background(), anna.String()); err != nil {
			t.Error(err)
		}
		fmt.Fprintf(out, "%s\r\n--b--\r\n", padded(4 * mib)[3*mib:])
		out.Close()
	}()
	if status, answer := s.send(t, "multipart/form-data; boundary=b", in); status == 201 {
		t.Errorf("%d %s", status, answer)
	}
	if left := s.lies(t); len(left) > 0 {
		t.Errorf("%q is left", left)
	}
}
