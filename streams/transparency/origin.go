package transparency

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// Origin identifies the log of a journal partition. Its text is the first line of checkpoints and the name of the key.
type Origin struct {
	Host      string // chosen by the operator; another host is another log
	Journal   string
	Partition int32
	ID        scalar.ID // of the journal, from its genesis
}

// String returns <host>/tlog/<journal>/<partition>/<journal id>. It is the URL under which tiles are served, without the scheme.
func (o Origin) String() string {
	return o.Host + "/tlog/" + o.Journal + "/" + strconv.Itoa(int(o.Partition)) + "/" + o.ID.String()
}

// folder returns the prefix of the log's objects in a bucket.
func (o Origin) folder() string {
	return fmt.Sprintf("tlog/%s/%s/%d/%s/", url.PathEscape(o.Host), o.Journal, o.Partition, o.ID)
}

// CheckHost returns an error if a host cannot begin an origin: names of keys have neither spaces nor plus signs.
func CheckHost(host string) error {
	odd := func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) || strings.ContainsRune(`+/\`, r) }
	if host == "" || strings.Trim(host, ".") == "" || !utf8.ValidString(host) || strings.ContainsFunc(host, odd) {
		return fmt.Errorf("%q is not a host name like venue.example", host)
	}
	return nil
}
