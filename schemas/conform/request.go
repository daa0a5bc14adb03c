package conform

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
)

// Request checks a request against the description: its query, the headers in the operation's description, and its
// body. It returns an error for an undescribed query parameter or body, but not for an undescribed header.
func (o *OpenAPI) Request(method string, target *url.URL, header http.Header, body []byte) error {
	route, ok := o.Find(method, target.EscapedPath())
	if !ok {
		return fmt.Errorf("%s %s is not described", method, target.Path)
	}
	query, err := url.ParseQuery(target.RawQuery)
	if err != nil {
		return err
	}
	at := "/paths/" + Escape(route.Path)
	operation := at + "/" + strings.ToLower(method)
	for _, pointer := range []string{at, operation} {
		if err := o.parameters(pointer+"/parameters", query, header); err != nil {
			return fmt.Errorf("%s: %w", route, err)
		}
	}
	for name := range query {
		return fmt.Errorf("%s: the parameter %s is not described", route, name)
	}
	if described, where := o.At(operation + "/requestBody/content/multipart~1form-data/schema"); described != nil {
		if err := o.form(where, header.Get("Content-Type"), body); err != nil {
			return fmt.Errorf("%s: the form: %w", route, err)
		}
		return nil
	}
	if described, where := o.At(operation + "/requestBody/content/application~1x-ndjson/schema"); described != nil {
		if err := o.validate(where, string(body)); err != nil {
			return fmt.Errorf("%s: the body: %w", route, err)
		}
		return nil
	}
	schema := operation + "/requestBody/content/application~1json/schema"
	if needed, _ := o.At(operation + "/requestBody/required"); needed == false && len(body) == 0 {
		return nil
	}
	if described, where := o.At(schema); described != nil {
		if err := o.Validate(where, body); err != nil && o.Validate(where, withoutNulls(body)) != nil {
			return fmt.Errorf("%s: the body: %w", route, err)
		}
	} else if text := strings.TrimSpace(string(body)); text != "" && text != "{}" {
		return fmt.Errorf("%s: a body is not described", route)
	}
	return nil
}

// form checks the fields of a multipart form against a schema, as strings. An empty field counts as absent.
func (o *OpenAPI) form(where, contentType string, body []byte) error {
	_, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		return err
	}
	fields := make(map[string]string)
	for parts := multipart.NewReader(bytes.NewReader(body), params["boundary"]); ; {
		p, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		text, err := io.ReadAll(p)
		if err != nil {
			return err
		}
		if p.FormName() == "file" {
			text = []byte("its content")
		}
		if len(text) > 0 {
			fields[p.FormName()] = string(text)
		}
	}
	text, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	return o.Validate(where, text)
}

// withoutNulls removes the null members of a body. In a request, null is equivalent to an absent member, or clears the
// current value.
func withoutNulls(body []byte) []byte {
	var members map[string]json.RawMessage
	if json.Unmarshal(body, &members) != nil {
		return body
	}
	for name, value := range members {
		if string(value) == "null" {
			delete(members, name)
		}
	}
	text, err := json.Marshal(members)
	if err != nil {
		return body
	}
	return text
}

// parameters checks the parameters that are described at a JSON Pointer, and removes them from the query.
func (o *OpenAPI) parameters(pointer string, query url.Values, header http.Header) error {
	list, _ := o.At(pointer)
	items, _ := list.([]any)
	for i := range items {
		value, where := o.At(fmt.Sprintf("%s/%d", pointer, i))
		p, _ := value.(map[string]any)
		name, _ := p["name"].(string)
		var given []string
		switch p["in"] {
		case "query":
			given = query[name]
			delete(query, name)
		case "header":
			given = header.Values(name)
		default:
			continue
		}
		if len(given) == 0 && p["required"] == true || len(given) > 1 {
			return fmt.Errorf("the parameter %s is there %d times", name, len(given))
		}
		for _, v := range given {
			if err := o.plain(where+"/schema", v); err != nil {
				return fmt.Errorf("the parameter %s: %w", name, err)
			}
		}
	}
	return nil
}

// plain checks a text as a string or, if the schema requires another type, as JSON.
func (o *OpenAPI) plain(at, text string) error {
	asText := o.validate(at, text)
	if asText == nil || !json.Valid([]byte(text)) {
		return asText
	}
	if err := o.Validate(at, []byte(text)); err != nil {
		return errors.Join(asText, err)
	}
	return nil
}
