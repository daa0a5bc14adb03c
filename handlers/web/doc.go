// Package web is what all HTTP handlers share: problems (RFC 9457), strict readers of JSON bodies and query strings that
// report all errors of a request together, paging, bearer tokens and scopes, log positions, idempotency keys, the mapping
// of the journal's errors to problems, rate limits, the access log and request metrics.
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
// Auth.Register registers routes; a route that names scopes needs a token. A command whose body holds a secret seals its
// form (Form.Seal). An Operation answers requests over HTTP and calls inside the process: it takes an Ask in place of
// Echo's context, and Server.Do runs it for a Call with the same checks, limits, metrics and problems. A View reads a
// journal's follower. A read from another source calls Await before it reads.
package web
