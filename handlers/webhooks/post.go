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
	"strconv"
	"syscall"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/webhook"
	"github.com/perpetua-exchange/perpetua/streams/fence"
)

const (
	// Within is how long an attempt may take in all.
	Within = fence.LongestDelivery
	// maxReply is how much of a receiver's reply is kept, in bytes; a connection whose reply is longer than maxRead is closed.
	maxReply = 256
	maxRead  = 8 << 10
	maxAfter = scalar.Time(366 * 24 * time.Hour / time.Microsecond) // that a receiver may ask to be left alone
)

// lowestStatus is the lowest status that an answer may have.
const lowestStatus = 100

// attempt is how one try went.
type attempt struct {
	started    time.Time
	took       time.Duration
	status     int    // 0: no answer came
	failure    string // why none came
	reply      []byte
	retryAfter scalar.Time // a span, 0 for none
}

// post sends a body once. It always comes to an end within the client's time.
func post(ctx context.Context, client *http.Client, url string, header http.Header, body []byte) (a attempt) {
	a.started = time.Now()
	defer func() { a.took = time.Since(a.started) }()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		a.failure = "the URL cannot be requested"
		return a
	}
	// net/http sends a POST again by itself only where nothing of it went out: on a kept connection that turns out to be closed.
	request.Header = header
	response, err := client.Do(request)
	if err != nil {
		a.failure = reason(err)
		return a
	}
	defer response.Body.Close()
	if response.StatusCode < lowestStatus {
		// net/http takes any three digits. The journal would refuse such an attempt, so that nobody would ever count it.
		a.failure = "ANSWER_INVALID: the answer's status is none of HTTP"
		return a
	}
	a.status = response.StatusCode
	a.retryAfter = retryAfter(response.Header.Get("Retry-After"), time.Now())
	if a.status == http.StatusSwitchingProtocols {
		// Nobody asked for another protocol. What follows is the connection itself, which net/http does not end any more when the
		// client's time is over: a receiver that says nothing more would hold this attempt for ever.
		return a
	}
	// The status counts, whatever becomes of the rest: it came.
	read, _ := io.ReadAll(io.LimitReader(response.Body, maxRead))
	a.reply = read[:min(len(read), maxReply)]
	return a
}

// reason says in words for the tenant why no answer came. It tells nothing of addresses and of this side of the network.
func reason(err error) string {
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
	}
	return "CONNECTION_LOST: the connection ended without an answer"
}

// retryAfter reads the header of that name, seconds or a date; 0 if it says nothing of use.
func retryAfter(text string, now time.Time) scalar.Time {
	if text == "" { // as nearly always, and what is no date is tried as one of three kinds
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
