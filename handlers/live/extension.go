package live

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"
)

const (
	extensionsHeader = "Sec-WebSocket-Extensions"
	extension        = "permessage-deflate"
	// accepted is the answer to an offer of the extension.
	accepted = extension + "; server_no_context_takeover; client_no_context_takeover"
	// acceptedWindow is added for a client that limits the server's window.
	acceptedWindow = "; server_max_window_bits="
)

// negotiate returns the answer to the first of a client's offers of permessage-deflate that the server can keep, and "" if there
// is none (RFC 7692, 7.1).
func negotiate(header http.Header) (answer string) {
	for _, list := range header.Values(extensionsHeader) {
		for _, offer := range splitUnquoted(list, ',') {
			if answer, ok := accept(splitUnquoted(offer, ';')); ok {
				return answer
			}
		}
	}
	return ""
}

// accept judges an offer: the extension's name and its parameters. One that is unknown, comes twice or has a bad value declines
// the offer.
func accept(offer []string) (answer string, ok bool) {
	if offer[0] != extension {
		return "", false
	}
	answer = accepted
	seen := make(map[string]bool)
	for _, parameter := range offer[1:] {
		name, value, valued := strings.Cut(parameter, "=")
		name, value = strings.TrimSpace(name), unquote(strings.TrimSpace(value))
		if seen[name] {
			return "", false
		}
		seen[name] = true
		switch {
		case (name == "server_no_context_takeover" || name == "client_no_context_takeover") && !valued:
		case name == "client_max_window_bits" && (!valued || isWindow(value, 8)): // a hint: the server inflates with any window
		case name == "server_max_window_bits" && isWindow(value, windowBits):
			answer += acceptedWindow + strconv.Itoa(windowBits)
		default:
			return "", false
		}
	}
	return answer, true
}

// isWindow reports whether a value is a number of window bits, from least to 15.
func isWindow(value string, least int) bool {
	bits, err := strconv.Atoi(value)
	return err == nil && bits >= least && bits <= 15 && strconv.Itoa(bits) == value
}

// splitUnquoted splits a header's value at a separator that is not inside quotes, and trims the parts.
func splitUnquoted(s string, separator byte) (parts []string) {
	quoted, begin := false, 0
	for i := range len(s) {
		switch {
		case s[i] == '"':
			quoted = !quoted
		case s[i] == separator && !quoted:
			parts = append(parts, strings.TrimSpace(s[begin:i]))
			begin = i + 1
		}
	}
	return append(parts, strings.TrimSpace(s[begin:]))
}

// unquote removes the quotes around a value.
func unquote(value string) string {
	if n := len(value); n >= 2 && value[0] == '"' && value[n-1] == '"' {
		return value[1 : n-1]
	}
	return value
}

// withExtension adds the extension to the library's answer to a handshake. The library does not let its callers name one.
func withExtension(answer []byte, extension string) []byte {
	if extension == "" {
		return answer
	}
	const lineEnd = "\r\n"
	return bytes.Replace(answer, []byte(lineEnd), []byte(lineEnd+extensionsHeader+": "+extension+lineEnd), 1)
}
