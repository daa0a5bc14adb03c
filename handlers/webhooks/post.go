package webhooks

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/webhook"
	"github.com/perpetua-exchange/perpetua/streams/fence"
)

const (
	// Within is the timeout of an attempt.
	Within = fence.LongestDelivery
	// maxReply is the size of the stored part of a receiver's reply, in bytes. A connection with a reply longer than
	// maxRead is closed.
	maxReply = 256
	maxRead  = 8 << 10
	maxAfter = scalar.Time(366 * 24 * time.Hour / time.Microsecond) // upper bound of a receiver's Retry-After
)

// lowestStatus is the lowest valid status of a response.
const lowestStatus = 100

// attempt is the result of one attempt.
type attempt struct {
	started    time.Time
	took       time.Duration
	status     int    // 0: no response
	failure    string // why there was no response
	reply      []byte
	retryAfter scalar.Time // a duration; 0: none
}

// post sends a body once. It returns within the client's timeout.
func post(ctx context.Context, client *http.Client, url string, header http.Header, body []byte) (a attempt) {
	a.started = time.Now()
	defer func() { a.took = time.Since(a.started) }()
	var answered atomic.Bool // the transport's goroutine sets it
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotFirstResponseByte: func() { answered.Store(true) }})
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		a.failure = "the URL cannot be requested"
		return a
	}
	// net/http repeats a POST only if nothing was sent because a reused connection had been closed.
	request.Header = header
	response, err := client.Do(request)
	if err != nil {
		a.failure = reason(err, answered.Load())
		return a
	}
	defer response.Body.Close()
	if response.StatusCode < lowestStatus {
		// net/http accepts any three digits. The journal would refuse the attempt, and it would never be counted.
		a.failure = "ANSWER_INVALID: the answer's status is none of HTTP"
		return a
	}
	a.status = response.StatusCode
	a.retryAfter = retryAfter(response.Header.Get("Retry-After"), time.Now())
	if a.status == http.StatusSwitchingProtocols {
		// No protocol switch was requested. The body is now the raw connection, to which net/http does not apply the
		// client's timeout, so a silent receiver would block this attempt forever.
		return a
	}
	// The status has arrived and counts, even if reading the body fails.
	read, _ := io.ReadAll(io.LimitReader(response.Body, maxRead))
	a.reply = read[:min(len(read), maxReply)]
	return a
}

// reason describes for the tenant why no valid response arrived. answered says that a part of one did. The description
// reveals neither addresses nor details of the venue's network.
func reason(err error, answered bool) string {
	var (
		forbidden *ForbiddenAddressError
		egress    *EgressError
		name      *net.DNSError
		authority x509.UnknownAuthorityError
		host      x509.HostnameError
		invalid   x509.CertificateInvalidError
		record    tls.RecordHeaderError
		alert     tls.AlertError
		timeout   interface{ Timeout() bool }
	)
	switch {
	case errors.As(err, &forbidden):
		return "ADDRESS_FORBIDDEN: " + forbidden.Error()
	case errors.As(err, &egress):
		return webhook.EgressFailed + ": the venue's way out cannot be used; the receiver was not asked"
	case errors.Is(err, errUnreachable):
		return "UNREACHABLE: there is no connection to the receiver"
	case errors.As(err, &name) && name.IsNotFound:
		return "NAME_UNKNOWN: the host has no address"
	case errors.As(err, &name):
		return "NAME_UNKNOWN: the host's address could not be found"
	case errors.As(err, &authority), errors.As(err, &host), errors.As(err, &invalid):
		return "TLS_FAILED: the receiver's certificate is not valid for it"
	case errors.As(err, &record), errors.As(err, &alert):
		return "TLS_FAILED: the receiver does not speak TLS as it should"
	case errors.As(err, &timeout) && timeout.Timeout():
		return "TIMEOUT: no answer came in time"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "CONNECTION_REFUSED: nothing listens at the address"
	case errors.Is(err, context.Canceled):
		return "INTERRUPTED: the sender stopped"
	case answered: // net/http has no errors of their own for these
		return "ANSWER_INVALID: the answer is not HTTP/1.1, breaks off, or has more than 64 KiB of headers"
	}
	return "CONNECTION_LOST: the connection ended without an answer"
}

// retryAfter parses a Retry-After header, in seconds or as a date. It returns 0 if the header is absent or unusable.
func retryAfter(text string, now time.Time) scalar.Time {
	if text == "" { // the usual case; parsing a date would try three formats
		return 0
	}
	if seconds, err := strconv.ParseUint(text, 10, 32); err == nil {
		return min(scalar.Time(seconds)*scalar.Second, maxAfter)
	}
	if at, err := http.ParseTime(text); err == nil && at.After(now) {
		return min(scalar.Time(at.Sub(now)/time.Microsecond), maxAfter)
	}
	return 0
}
