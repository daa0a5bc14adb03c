package transparency

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

const (
	// maxAnswer bounds the bytes read of a witness's answer.
	maxAnswer = 64 << 10
	// sizeType is the media type of the size that a witness knows.
	sizeType = "text/x.tlog.size"
)

// errRefused reports that a witness contradicts the log: it has cosigned a tree that the log does not extend.
var errRefused = errors.New("the witness has cosigned another tree")

// witnessClient submits the checkpoints of one log to one witness (c2sp.org/tlog-witness).
type witnessClient struct {
	Witness
	http  *http.Client
	known int64 // size of the tree that the witness last cosigned, as far as is known
}

// submission is a checkpoint for a witness.
type submission struct {
	opened *Opened
	note   []byte
	hashes tlog.HashReader // of the checkpoint's tree
}

// submit sends a checkpoint to the witness, and returns the line of the cosignature. If the witness answers with another size,
// submit sends the proof from that size.
func (w *witnessClient) submit(ctx context.Context, s *submission) (string, error) {
	if w.known > s.opened.Size { // it may have been restored since
		w.known = 0
	}
	for range 2 {
		body, err := s.request(w.known)
		if err != nil {
			return "", err
		}
		status, kind, answer, err := w.post(ctx, body)
		switch {
		case err != nil:
			return "", err
		case status == http.StatusOK:
			line, err := w.cosignature(s, answer)
			if err == nil {
				w.known = s.opened.Size
			}
			return line, err
		case status == http.StatusConflict && kind == sizeType:
			text := strings.TrimSuffix(string(answer), "\n")
			size, err := strconv.ParseInt(text, 10, 64)
			if err != nil || size < 0 {
				return "", fmt.Errorf("it answered with the size %.40q", text)
			}
			if size == w.known {
				return "", fmt.Errorf("%w of size %d", errRefused, size)
			}
			if w.known = size; size > s.opened.Size {
				return "", fmt.Errorf("%w: it knows %d records, and the checkpoint covers %d", errRefused, size, s.opened.Size)
			}
		case status == http.StatusConflict, status == http.StatusUnprocessableEntity:
			return "", fmt.Errorf("%w: it answered %d to the growth from %d to %d records", errRefused, status, w.known, s.opened.Size)
		default:
			return "", fmt.Errorf("it answered %d: %.200q", status, answer)
		}
	}
	return "", errors.New("it named one size after another")
}

// request returns the body of an add-checkpoint request for a witness that knows a size.
func (s *submission) request(known int64) ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "old %d\n", known)
	if known > 0 && known < s.opened.Size {
		proof, err := tlog.ProveTree(s.opened.Size, known, s.hashes)
		if err != nil {
			return nil, fmt.Errorf("the proof from %d records: %w", known, err)
		}
		for _, h := range proof {
			b.WriteString(h.String() + "\n")
		}
	}
	b.WriteString("\n")
	b.Write(s.note)
	return b.Bytes(), nil
}

func (w *witnessClient) post(ctx context.Context, body []byte) (status int, kind string, answer []byte, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.URL+"/add-checkpoint", bytes.NewReader(body))
	if err != nil {
		return 0, "", nil, err
	}
	r.Header.Set("Content-Type", "text/plain; charset=utf-8")
	a, err := w.http.Do(r)
	if err != nil {
		return 0, "", nil, err
	}
	defer a.Body.Close()
	answer, err = io.ReadAll(io.LimitReader(a.Body, maxAnswer))
	return a.StatusCode, a.Header.Get("Content-Type"), answer, err
}

// cosignature returns the line of an answer that is a valid cosignature of the witness. Lines of other keys are ignored.
func (w *witnessClient) cosignature(s *submission, answer []byte) (string, error) {
	n, err := note.Open([]byte(s.opened.Text+"\n"+string(answer)), note.VerifierList(w.Key))
	if err != nil {
		return "", fmt.Errorf("its cosignature: %w", err)
	}
	return "— " + n.Sigs[0].Name + " " + n.Sigs[0].Base64 + "\n", nil
}
