package base

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Trim says up to where a log may be deleted: the first record that it keeps, and that record's offset there.
type Trim struct {
	Base   record.Base `json:"base"`
	Offset int64       `json:"offset"` // of record Base.Sequence; every lower offset may be deleted
}

// Trimmer deletes the beginning of the log in one place.
type Trimmer interface {
	// Trim deletes records below t.Offset and returns the lowest offset that is left. It MUST NOT delete a record at t.Offset or
	// after it. It MUST return an error and delete nothing if t.Offset is above safe, the lowest offset that any reader still
	// needs, or if t.CheckRecord refuses the record at t.Offset. It may delete less, so repeating it is harmless. The base MUST
	// have been kept by every Keeper before.
	Trim(ctx context.Context, topic string, t Trim, safe int64) (start int64, err error)
}

// Check returns an error if a trim must not be carried out.
func (t Trim) Check(safe int64) error {
	if err := t.validate(); err != nil {
		return err
	}
	if t.Offset > safe {
		return fmt.Errorf("the trim of %s/%d would delete the log up to offset %d, and only what is below %d is safe to delete",
			t.Base.Journal, t.Base.Partition, t.Offset, safe)
	}
	return nil
}

// CheckRecord returns an error unless r is the first record that the trim keeps: a wrong offset would delete records that
// nothing else holds. The check does not tell a record from its
// later copy, or from one that lost a race for the same place.
func (t Trim) CheckRecord(r *kgo.Record) error {
	id := ""
	for _, h := range r.Headers {
		if h.Key == "ce_id" {
			id = string(h.Value)
		}
	}
	key := t.Base.Journal + "/" + strconv.Itoa(int(t.Base.Partition))
	wantID := t.Base.JournalID.String() + "/" + strconv.FormatInt(t.Base.Sequence, 10)
	reason := ""
	prev, sequence, ok := record.PrevOf(r.Value)
	switch {
	case r.Offset != t.Offset:
		reason = fmt.Sprintf("the next record is at offset %d", r.Offset)
	case !ok:
		reason = "it is not in the form of a record"
	case sequence != t.Base.Sequence:
		reason = fmt.Sprintf("it is record %d", sequence)
	case prev != t.Base.Prev:
		reason = fmt.Sprintf("it follows the hash %s", prev)
	case string(r.Key) != key:
		reason = fmt.Sprintf("its key is %q", r.Key)
	case id != wantID:
		reason = fmt.Sprintf("its id is %q", id)
	default:
		return nil
	}
	return fmt.Errorf("the record at offset %d is not the first one of the %v: %s", t.Offset, t.Base, reason)
}

func (t Trim) validate() error {
	if err := t.Base.Validate(); err != nil {
		return err
	}
	if t.Offset < 0 {
		return fmt.Errorf("offset %d", t.Offset)
	}
	return nil
}

// JSON returns the form of trim.json.
func (t Trim) JSON() []byte {
	text, err := json.Marshal(t)
	if err != nil { // as for a base
		panic(err)
	}
	return text
}

// ParseTrim reads the form of trim.json. It accepts exactly the bytes that JSON returns.
func ParseTrim(text []byte) (Trim, error) {
	var t Trim
	if err := json.Unmarshal(text, &t, json.RejectUnknownMembers(true), jsontext.AllowDuplicateNames(false)); err != nil {
		return Trim{}, fmt.Errorf("this does not say where a log was trimmed: %w", err)
	}
	if err := t.validate(); err != nil {
		return Trim{}, err
	}
	if string(t.JSON()) != string(text) {
		return Trim{}, errors.New("this does not say where a log was trimmed: its JSON is not in the canonical form")
	}
	return t, nil
}
