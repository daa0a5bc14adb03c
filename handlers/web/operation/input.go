package operation

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/perpetua-exchange/perpetua/domain/form"
	"github.com/perpetua-exchange/perpetua/handlers/web/input"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
)

// OnlyForm returns the form of a body for a route without a query. It takes the result of Content, and also reports errors
// of the query and of the Idempotency-Key.
func (a Request) OnlyForm(raw []byte, err error) *input.Form {
	f := input.BodyUpTo(raw, err, problem.MaxErrors(a.transport.Target()))
	f.Also(a.NoQuery())
	_, err = a.Key()
	f.Also(err)
	return f
}

// Decode reads the body of a request without a query into a zero value. It returns the body, for BodyFingerprint. Its
// error lists every error of the body, the query, and the Idempotency-Key.
func Decode[T any](a Request, o *form.Object[T], to *T) (raw []byte, _ error) {
	raw, err := a.Content()
	if _, badKey := a.Key(); err == nil && badKey == nil && a.transport.Query() == "" && o.Decode(raw, to) {
		return raw, nil
	}
	return raw, input.Explain(a.OnlyForm(raw, err), o, to)
}

// BodyItems reads a body with a single member, an array of 1 to most items (see input.Items). The route takes no query.
func (a Request) BodyItems(name string, most int) ([]jsontext.Value, error) {
	raw, err := a.Content()
	if err == nil {
		err = a.NoQuery()
	}
	if err != nil {
		return nil, err
	}
	return input.Items(raw, name, most)
}

// Query reads the request's query. Unknown and repeated parameters are errors.
func (a Request) Query() *input.Form { return input.Query(a.transport.Query()) }

// Path returns a form of the route's parameters, for parameters that must be valid. In the onboarding interface, an
// invalid ID in the path is a validation error.
func (a Request) Path() *input.Form {
	_, _, names := a.transport.Route()
	return input.Path(names, a.Param)
}

// NoQuery returns an error if the request has query parameters.
func (a Request) NoQuery() error {
	if a.transport.Query() == "" {
		return nil
	}
	return a.Query().Done()
}

// NoBody returns an error unless the request has no query and its body is absent, empty or {}.
func (a Request) NoBody() error {
	if err := a.NoQuery(); err != nil {
		return err
	}
	return a.BodyAbsent()
}

// BodyAbsent is NoBody for a route with a query.
func (a Request) BodyAbsent() error { return a.transport.Absent() }
