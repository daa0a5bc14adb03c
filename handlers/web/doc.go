// Package web contains the code that all HTTP handlers share: problems (RFC 9457), strict parsers of JSON bodies and
// query strings that report all errors of a request, paging, bearer tokens and scopes, log positions, idempotency
// keys, the conversion of the journal's errors to problems, rate limits, the access log and request metrics.
//
// A handler reads its request, submits a command to the journal and renders the record that answers it:
//
//	func (h *Handler) registerBroker(c echo.Context) error {
//		b := web.BodyOnly(c)
//		payload := &identity.RegisterBroker{Broker: b.String("broker", brokerRule), Name: b.String("name", nameRule)}
//		e, err := web.Execute[*identity.BrokerRegistered](c, h.identity, payload, b)
//		if err != nil { // an error in the body, a refusal, or an error of the journal
//			return err
//		}
//		return c.JSON(http.StatusCreated, broker(e.Broker)) // with X-Log-Position
//	}
//
// Handlers return errors and never write them. The error handler that New installs gives every error one shape:
// application/problem+json for the trading and operator interfaces, {"detail":…} under /api/v1 and /auth.
//
// Auth.Register registers routes; a route that names scopes needs a token. A handler of a body with a secret
// seals the form (Form.Seal). An Operation serves HTTP requests and calls inside the process: it takes a Request instead
// of Echo's context, and Server.Do runs it for a Call with the same checks, limits, metrics and problems. A View
// reads a journal's follower. A read from another source calls Await first.
//
// Start with server.go, which runs a request; then read form.go for input, execute.go for commands, and follower.go and
// readyourwrites.go for reads.
package web
