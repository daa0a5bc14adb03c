package e2e

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// gate stands in front of brokers and passes everything on, until the log has been given so many records of a kind: from then on
// nothing that is produced comes through. A venue that is killed then leaves its log in the midst of them, however fast the
// machine, the venue and the brokers are to each other. (A fast venue hands a whole wave to slow brokers in one batch. The gate
// lets the part through that would have been a batch with quicker ones.)
type gate struct {
	*kafkaProxy

	mu     sync.Mutex
	mark   []byte        // what each of the records holds; nil while everything comes through
	left   int           // how many of them are to come through
	shut   bool          // none are left
	closed chan struct{} // closed when the log holds what came through
	opened chan struct{} // closed when everything comes through again
}

// newGate puts a gate in front of brokers, and of those that they name.
func newGate(t testing.TB, brokers []string) *gate {
	t.Helper()
	g := new(gate)
	g.kafkaProxy = newKafkaProxy(t, brokers, g.judge)
	t.Cleanup(g.open) // before the proxy ends, which waits for what is held
	return g
}

// someBrokers returns the addresses of the brokers that KAFKA_BROKERS names, or else of one in the test's process.
func someBrokers(t testing.TB) []string {
	t.Helper()
	if named := os.Getenv("KAFKA_BROKERS"); named != "" {
		return strings.Split(named, ",")
	}
	fake, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fake.Close)
	return fake.ListenAddrs()
}

// closeAfter has the gate close after so many steps of the engine's for a kind of work. It returns what is closed when it has,
// and the log holds them.
func (g *gate) closeAfter(most int, work string) (closed <-chan struct{}) {
	return g.closeAt(most, stepFor(work))
}

// closeAt has the gate close after so many records that hold a mark, or for 0 before the first. It returns what is closed when it
// has, and the log holds those that came through. Whoever produced the last of them does not learn of it.
func (g *gate) closeAt(most int, mark []byte) (closed <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mark, g.left, g.shut = mark, most, false
	g.closed, g.opened = make(chan struct{}), make(chan struct{})
	return g.closed
}

// open lets everything come through again, save what it held: that is lost with its connection.
func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mark != nil {
		g.mark = nil
		close(g.opened)
	}
}

// judge counts the marks in a produce request, and says what comes through of it.
func (g *gate) judge(request []byte) (ruling, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mark == nil {
		return ruling{forward: request}, nil
	}
	n := bytes.Count(request, g.mark) // batches are not compressed
	switch {
	case g.shut:
		// The venue is killed meanwhile. If this came through after that, it would be appended before the next term, and be valid:
		// the venue would not have been in the midst of its work.
		return ruling{until: g.opened}, nil
	case n == 0 || n < g.left:
		g.left -= n
		return ruling{forward: request}, nil
	case g.left == 0:
		g.shut = true
		close(g.closed)
		return ruling{until: g.opened}, nil
	}
	part, err := cutProduce(request, g.mark, g.left)
	if err != nil {
		return ruling{}, err
	}
	g.shut = true
	closed := g.closed
	// Who produced it may not learn that it was appended, for some of it was not.
	return ruling{forward: part, answered: func() { close(closed) }, until: g.opened}, nil
}

// cutProduce returns a request to append the batch of another one, up to the record that is the nth to hold a mark.
func cutProduce(request, mark []byte, n int) ([]byte, error) {
	whole := kmsg.NewPtrProduceRequest()
	whole.SetVersion(int16(binary.BigEndian.Uint16(request[2:])))
	head := 10 + max(0, int(int16(binary.BigEndian.Uint16(request[8:])))) // key, version, correlation id, client id
	if whole.IsFlexible() {
		head++ // the number of tags, which is zero
	}
	if err := whole.ReadFrom(request[head:]); err != nil {
		return nil, err
	}
	if len(whole.Topics) != 1 || len(whole.Topics[0].Partitions) != 1 {
		return nil, errors.New("more than one batch in a request")
	}
	p := &whole.Topics[0].Partitions[0]
	var batch kmsg.RecordBatch
	if err := batch.ReadFrom(p.Records); err != nil {
		return nil, err
	}
	end := 0
	for i := range batch.NumRecords {
		size, prefix := binary.Varint(batch.Records[end:])
		record := batch.Records[end : end+prefix+int(size)]
		end += len(record)
		if n -= bytes.Count(record, mark); n > 0 {
			continue
		}
		var last kmsg.Record
		if err := last.ReadFrom(record); err != nil {
			return nil, err
		}
		batch.NumRecords, batch.LastOffsetDelta, batch.MaxTimestamp = i+1, i, batch.FirstTimestamp+last.TimestampDelta64
		break
	}
	batch.Records = batch.Records[:end]
	batch.Length = int32(len(batch.AppendTo(nil)) - 12)                                            // behind itself
	batch.CRC = int32(crc32.Checksum(batch.AppendTo(nil)[21:], crc32.MakeTable(crc32.Castagnoli))) // of what is behind it
	p.Records = batch.AppendTo(nil)
	return whole.AppendTo(request[:head:head]), nil
}
