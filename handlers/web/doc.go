// Package web is what all HTTP handlers share: problems (RFC 9457), strict readers of JSON bodies and query strings
// that report every fault at once, paging, bearer tokens and scopes, log positions, idempotency keys, the meaning of
// the journal's errors, rate limits, the access log and request metrics.
//
// A handler reads its request, hands a command to the journal and renders the record that answers it:
//
//	func (h *Handler) registerBroker(c echo.Context) error {
//		b := web.BodyOnly(c)
//		payload := &identity.RegisterBroker{Broker: b.String("broker", brokerRule), Name: b.String("name", nameRule)}
//		e, err := web.Execute[*identity.BrokerRegistered](c, h.identity, payload, b)
//		if err != nil { // a fault of the body, a refusal, or the journal's
//			return err
//		}
//		return c.JSON(http.StatusCreated, broker(e.Broker)) // with X-Log-Position
//	}
//
// Errors are returned, never written by a handler: the error handler that New installs turns every error into one
// shape, application/problem+json for the trading and operator interfaces, {"detail":…} under /api/v1 and /auth.
//
// Routes are registered with Auth.Register, by which those that name scopes need a token. A command whose body holds a
// secret seals its form (Form.Seal). What may be asked for without HTTP, too, is an Operation: it takes an Ask in place
// of Echo's context, and Server.Do has it answer a Call with the same checks, limits, metrics and problems. A read of a
// journal's follower is a View; one of anything else calls Await before it looks at its source.
package web
