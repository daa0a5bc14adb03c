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
	// accepted is the response to an offer of the extension.
	accepted = extension + "; server_no_context_takeover; client_no_context_takeover"
	// acceptedWindow is appended if the client limits the server's window.
	acceptedWindow = "; server_max_window_bits="
)

// negotiate returns the response to the first offer of permessage-deflate that the server can fulfill, or "" without
// one (RFC 7692, section 7.1).
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

// accept evaluates an offer, which consists of the extension's name and parameters. An unknown or repeated parameter
// or an invalid value declines the offer.
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
		case name == "client_max_window_bits" && (!valued || isWindow(value, 8)): // any window can be decompressed
		case name == "server_max_window_bits" && isWindow(value, windowBits):
			answer += acceptedWindow + strconv.Itoa(windowBits)
		default:
			return "", false
		}
	}
	return answer, true
}

// isWindow reports whether value is a number of window bits from least to 15.
func isWindow(value string, least int) bool {
	bits, err := strconv.Atoi(value)
	return err == nil && bits >= least && bits <= 15 && strconv.Itoa(bits) == value
}

// splitUnquoted splits a header value at separators outside quotes and trims the parts.
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

// withExtension adds the extension to the library's handshake response, because the library has no option for it.
func withExtension(answer []byte, extension string) []byte {
	if extension == "" {
		return answer
	}
	const lineEnd = "\r\n"
	return bytes.Replace(answer, []byte(lineEnd), []byte(lineEnd+extensionsHeader+": "+extension+lineEnd), 1)
}
