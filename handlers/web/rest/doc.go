// Package rest serves handlers and operations over HTTP with Echo: the server with its access log, metrics, and traces;
// routes and their scopes; headers, caching, compression, CORS, and paging.
//
// A handler reads its request, submits a command to the journal and renders the record that answers it:
//
//	func (h *Handler) registerBroker(c echo.Context) error {
//		b := rest.BodyOnly(c)
//		payload := &identity.RegisterBroker{Broker: b.String("broker", input.BrokerCode), Name: b.String("name", nameRule)}
//		e, err := rest.Execute[*identity.BrokerRegistered](c, h.identity, payload, b)
//		if err != nil { // an error in the body, a refusal, or an error of the journal
//			return err
//		}
//		return c.JSON(http.StatusCreated, broker(e.Broker)) // with X-Log-Position
//	}
//
// Handlers return errors and never write them. The error handler that New installs gives every error one shape:
// application/problem+json for the trading and operator interfaces, {"detail":…} under /api/v1 and /auth.
//
// Auth.Register registers routes; a route that names scopes needs a token. Server.LimitRequests limits the requests
// by user or API key, and without a valid token by the client's network. A handler of a body with a secret seals the form
// (input.Form.Seal). An operation.Operation serves HTTP requests and calls inside the process: it takes an
// operation.Request instead of Echo's context, and Server.Do runs it for a Call with the same checks, limits, metrics and
// problems. A View reads a journal's follower. A read from another source calls Await first.
//
// Start with server.go, which runs a request; then read routes.go and auth.go, and handler.go for the functions that a handler calls.
package rest
