package conform

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
)

// OpenAPI is a description of a REST interface, version 3.1.
type OpenAPI struct {
	*Document
	routes []Route
}

// Route is a method and a path with its parameters in braces, as the description writes it.
type Route struct {
	Method string
	Path   string
}

// String returns the method and the path.
func (r Route) String() string { return r.Method + " " + r.Path }

// NewOpenAPI reads a description.
func NewOpenAPI(source []byte) (*OpenAPI, error) {
	d, err := NewDocument("openapi/openapi.yaml", source, nil)
	if err != nil {
		return nil, err
	}
	o := &OpenAPI{Document: d}
	paths, _ := d.At("/paths")
	items, ok := paths.(map[string]any)
	if !ok {
		return nil, errors.New("the description has no paths")
	}
	for path, item := range items {
		operations, _ := item.(map[string]any)
		for _, method := range methods {
			if _, ok := operations[strings.ToLower(method)]; ok {
				o.routes = append(o.routes, Route{method, path})
			}
		}
	}
	sort.Slice(o.routes, func(i, j int) bool { return o.routes[i].String() < o.routes[j].String() })
	return o, nil
}

var methods = []string{http.MethodGet, http.MethodPut, http.MethodPost, http.MethodDelete, http.MethodPatch, http.MethodHead,
	http.MethodOptions, http.MethodTrace}

// Routes returns the described routes.
func (o *OpenAPI) Routes() []Route { return slices.Clone(o.routes) }

// Find returns the described route for a request. A path without parameters takes precedence over a path with
// parameters, for all methods.
func (o *OpenAPI) Find(method, path string) (Route, bool) {
	best, least := "", -1
	for _, r := range o.routes {
		if n, ok := matches(r.Path, path); ok && (least < 0 || n < least) {
			best, least = r.Path, n
		}
	}
	route := Route{method, best}
	return route, slices.Contains(o.routes, route)
}

// matches reports whether a path matches a template, and the number of parameters.
func matches(template, path string) (parameters int, ok bool) {
	for more := true; more; {
		var want, got string
		var moreGot bool
		want, template, more = strings.Cut(template, "/")
		got, path, moreGot = strings.Cut(path, "/")
		switch {
		case more != moreGot:
			return 0, false
		case strings.HasPrefix(want, "{"):
			if got == "" {
				return 0, false
			}
			parameters++
		case want != got:
			return 0, false
		}
	}
	return parameters, true
}

// Response checks a response against the description: its status, its headers and content type, and its body. Retry-After
// must be described, and so must the position of a refusal, except under /api. An unknown path must have the response 404, and an undescribed method of
// a known path 405, both with a problem.
func (o *OpenAPI) Response(method, path string, status int, header http.Header, body []byte) error {
	route, ok := o.Find(method, path)
	if !ok {
		return o.undescribed(method, path, status, body)
	}
	where := "/paths/" + Escape(route.Path) + "/" + strings.ToLower(method) + "/responses/" + strconv.Itoa(status)
	response, where := o.At(where)
	if response == nil {
		return fmt.Errorf("%s: status %d is not described", route, status)
	}
	if err := o.headers(where, header); err != nil {
		return fmt.Errorf("%s: status %d: %w", route, status, err)
	}
	const position = "X-Log-Position"
	described, _ := o.At(where + "/headers/" + position)
	if described == nil && refusal[status] && header.Get(position) != "" && method != http.MethodGet && !strings.HasPrefix(path, "/api/") {
		return fmt.Errorf("%s: status %d: the header %s is not described", route, status, position)
	}
	const retryAfter = "Retry-After"
	if described, _ := o.At(where + "/headers/" + retryAfter); described == nil && header.Get(retryAfter) != "" {
		return fmt.Errorf("%s: status %d: the header %s is not described", route, status, retryAfter)
	}
	if err := o.body(where, header.Get("Content-Type"), body); err != nil {
		return fmt.Errorf("%s: status %d: %w", route, status, err)
	}
	return nil
}

// refusal has the statuses with which an engine refuses a write.
var refusal = map[int]bool{http.StatusBadRequest: true, http.StatusForbidden: true, http.StatusNotFound: true, http.StatusConflict: true,
	http.StatusRequestEntityTooLarge: true, http.StatusUnprocessableEntity: true}

func (o *OpenAPI) undescribed(method, path string, status int, body []byte) error {
	known := slices.ContainsFunc(o.routes, func(r Route) bool { _, ok := matches(r.Path, path); return ok })
	if want := map[bool]int{false: http.StatusNotFound, true: http.StatusMethodNotAllowed}[known]; status != want {
		return fmt.Errorf("%s %s is not described and must be answered %d, not %d", method, path, want, status)
	}
	if strings.HasPrefix(path, "/api/") || strings.HasPrefix(path, "/auth/") {
		return o.Validate("/components/schemas/OnboardingError", body)
	}
	return o.Validate("/components/schemas/Problem", body)
}

func (o *OpenAPI) headers(where string, header http.Header) error {
	described, _ := o.At(where + "/headers")
	names, _ := described.(map[string]any)
	for name := range names {
		value, at := o.At(where + "/headers/" + Escape(name))
		object, _ := value.(map[string]any)
		got := header.Values(name)
		if len(got) == 0 {
			if object["required"] == true {
				return fmt.Errorf("the header %s is missing", name)
			}
			continue
		}
		for _, v := range got {
			if err := o.validate(at+"/schema", v); err != nil {
				return fmt.Errorf("the header %s: %w", name, err)
			}
		}
	}
	return nil
}

func (o *OpenAPI) body(where, contentType string, body []byte) error {
	described, _ := o.At(where + "/content")
	types, _ := described.(map[string]any)
	if len(types) == 0 {
		if len(body) > 0 {
			return errors.New("a body is not described")
		}
		return nil
	}
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return fmt.Errorf("the content type %q: %w", contentType, err)
	}
	if _, ok := types[media]; !ok {
		return fmt.Errorf("the content type %s is not described", media)
	}
	at := where + "/content/" + Escape(media) + "/schema"
	if strings.HasSuffix(media, "json") {
		return o.Validate(at, body)
	}
	if strings.HasSuffix(media, "yaml") {
		if body, err = yaml.YAMLToJSON(body); err != nil {
			return err
		}
		return o.Validate(at, body)
	}
	return o.validate(at, string(body))
}

// Transport checks every response that passes through it. It calls report with an error, and returns the response
// unchanged. It does not check responses to upgrades, which are not HTTP afterwards.
func (o *OpenAPI) Transport(next http.RoundTripper, report func(error)) http.RoundTripper {
	if next == nil {
		next = http.DefaultTransport
	}
	return transport{o, next, report}
}

type transport struct {
	openapi *OpenAPI
	next    http.RoundTripper
	report  func(error)
}

// RoundTrip sends the request and checks its response.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(r)
	if err != nil || resp.StatusCode == http.StatusSwitchingProtocols {
		return resp, err
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	if err := t.openapi.Response(r.Method, r.URL.Path, resp.StatusCode, resp.Header, body); err != nil {
		t.report(fmt.Errorf("%s %s: %w\n%s", r.Method, r.URL.Path, err, body))
	}
	return resp, nil
}
