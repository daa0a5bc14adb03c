package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// proof is the result of comparing the clients' answers with the log.
type proof struct {
	acknowledged int
	records      int64
	lost         []string // references of acknowledged orders that the log lacks or contradicts
	doubled      []string // references in more than one record
	audit        error    // nil if the read models equal the log
}

func (p proof) safe() bool { return len(p.lost) == 0 && len(p.doubled) == 0 && p.audit == nil }

// placed is an order in the log.
type placed struct {
	count    int
	sequence int64
	code     string
	rejected bool
}

// prove compares every answer with the log and runs the audit. The log command checks the chain from genesis.
func (t *trial) prove(ctx context.Context) (p proof, err error) {
	orders, records, err := t.readLog(ctx)
	if err != nil {
		return p, err
	}
	p.records = records
	t.load.mu.Lock()
	answers, unknown := slices.Clone(t.load.answers), slices.Clone(t.load.unknown)
	t.load.mu.Unlock()
	p.acknowledged = len(answers)
	p.lost, p.doubled = compare(answers, unknown, orders)
	p.audit = t.venue.tool(ctx, io.Discard, "audit")
	return p, ctx.Err()
}

// compare looks every answer up in the log, by reference. An order that the client gave up may appear once or not at
// all.
func compare(answers []answer, unknown []string, orders map[string]placed) (lost, doubled []string) {
	for _, a := range answers {
		o := orders[a.reference]
		switch {
		case o.count > 1:
			doubled = append(doubled, a.reference)
		case o.count == 0, o.code != a.code, o.rejected != a.rejected, a.sequence < o.sequence:
			// An order that was sent again may be answered from a later record, which changed the order.
			lost = append(lost, a.reference)
		}
	}
	for _, reference := range unknown {
		if orders[reference].count > 1 {
			doubled = append(doubled, reference)
		}
	}
	return lost, doubled
}

// readLog reads the trading journal with the tool and returns the orders in it by reference.
func (t *trial) readLog(ctx context.Context) (orders map[string]placed, records int64, err error) {
	orders = make(map[string]placed)
	read, write := io.Pipe()
	parsed := make(chan error, 1)
	go func() {
		err := eachRecord(read, func(sequence int64, command string, events []event) error {
			records++
			if command == "order.place" {
				noteOrder(orders, sequence, events)
			}
			return nil
		})
		read.CloseWithError(err)
		parsed <- err
	}()
	err = t.venue.tool(ctx, write, "log", "--journal", topic, "--check-all")
	write.CloseWithError(err) // nil is the end of the log
	if broken := <-parsed; err == nil {
		err = broken
	}
	if err == nil && records == 0 {
		err = errors.New("the log is empty")
	}
	return orders, records, err
}

// event is one event of a record.
type event struct {
	Type string          `json:"type"`
	Data json.RawMessage `json:"data"`
}

// eachRecord parses records, one per line.
func eachRecord(r io.Reader, do func(sequence int64, command string, events []event) error) error {
	lines := bufio.NewReaderSize(r, 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			var record struct {
				Sequence int64                 `json:"sequence"`
				Command  struct{ Type string } `json:"command"`
				Events   []event               `json:"events"`
			}
			if err := json.Unmarshal(line, &record); err != nil {
				return fmt.Errorf("a record of the log: %w", err)
			}
			if err := do(record.Sequence, record.Command.Type, record.Events); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// noteOrder records the order that a record placed. The record also has events of the orders that it traded with, which
// are recognized by their codes.
func noteOrder(orders map[string]placed, sequence int64, events []event) {
	for _, e := range events {
		if e.Type != "order.opened" && e.Type != "order.rejected" && e.Type != "order.filled" && e.Type != "order.partially_filled" && e.Type != "order.canceled" {
			continue
		}
		var o struct {
			Code      string `json:"code"`
			Reference string `json:"reference_id"`
			Created   string `json:"created"`
			Updated   string `json:"updated"`
		}
		if json.Unmarshal(e.Data, &o) != nil || !strings.HasPrefix(o.Reference, "f-") {
			continue
		}
		known := orders[o.Reference]
		if known.count > 0 && known.code == o.Code {
			continue // a change of a known order
		}
		known.count++
		known.sequence, known.code, known.rejected = sequence, o.Code, e.Type == "order.rejected"
		orders[o.Reference] = known
	}
}
