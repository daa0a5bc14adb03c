// Package web is what all HTTP handlers share: problems (RFC 9457), strict readers of JSON bodies and query strings
// that report every fault at once, paging, bearer tokens and scopes, log positions, idempotency keys, the meaning of
// the journal's errors, rate limits, the access log and request metrics.
//
// A handler reads its request, hands a command to the journal and renders the record that answers it:
//
//	func (h *Handler) setIndexPrice(c echo.Context) error {
//		b := web.Body(c)
//		price := b.Decimal("price", web.Positive)
//		if err := b.Done(); err != nil {
//			return err
//		}
//		cmd, err := web.NewCommand(c, "index.set", &trading.SetIndexPrice{…, Price: price}, b)
//		if err != nil {
//			return err
//		}
//		result, err := web.Submit(c, h.journals, "trading", cmd) // sets X-Log-Position
//		if err != nil {
//			return err
//		}
//		return c.JSON(http.StatusOK, indexPriceReply(result.Entry.Record))
//	}
//
// Errors are returned, never written by a handler: the error handler that New installs turns every error into one
// shape, application/problem+json for the trading and operator interfaces, {"detail":…} under /api/v1 and /auth.
//
// Routes that need a token are registered with Auth.Require; a command whose body holds a secret takes a
// SealedFingerprint in place of the plain one; a read calls Await before it looks at its source.
package web
