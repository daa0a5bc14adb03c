package launch

import (
	"errors"
	"fmt"

	"github.com/perpetua-exchange/perpetua/streams/record"
)

// advise adds to the error of a log that lacks records what an operator can do about it.
func advise(err error) error {
	var trimmed *record.TrimmedError
	if errors.As(err, &trimmed) {
		return fmt.Errorf("%w. The archive of this venue has them; --archive-url names it", err)
	}
	var base *record.BaseError
	if errors.As(err, &base) {
		return fmt.Errorf("%w. If the brokers deleted records that no perpetua log trim has, because of retention or of an administrator, "+
			"stop that first: all nodes refuse the log. Restore a backup into a new folder, or the archive into an empty topic "+
			"with perpetua log restore; records that neither has are lost", err)
	}
	var lost *record.DivergedError
	if !errors.As(err, &lost) {
		return err
	}
	return fmt.Errorf("%w. First make sure that --kafka-brokers, --topic-prefix, --database-url, and --blob-url are those of one venue. "+
		"If the log lost records, perpetua log restore appends those that the archive has. Otherwise restore a backup "+
		"into a new folder, or give up what the log lacks with perpetua admin forget-log --journal %s", err, lost.Journal)
}
