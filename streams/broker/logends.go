package broker

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// logEnd says that, according to a response, a partition has records up to (excluding) the offset end. The topic is
// given by name or, if the name is empty, by id.
type logEnd struct {
	topic     string
	id        [16]byte
	partition int32
	end       int64
}

// tells reports whether responses to requests of this kind depend on the data that is on disk.
func tells(key kmsg.Key) bool {
	switch key {
	case kmsg.Produce, kmsg.Fetch, kmsg.ShareFetch, kmsg.ListOffsets, kmsg.OffsetForLeaderEpoch, kmsg.DeleteTopics:
		return true
	default:
		return false
	}
}

// errRefused reports that kfake could not write a produced batch.
var errRefused = errors.New("kfake could not write a batch")

// logEnds returns the log ends that a response reveals: for an acknowledgement the end of the batch, for a fetch the
// high watermark, which all returned records are below. It fails if the response reports a failed write.
func logEnds(r kmsg.Response) ([]logEnd, error) {
	switch r := r.(type) {
	case *kmsg.ProduceResponse:
		return produced(r)
	case *kmsg.FetchResponse:
		return fetched(r), nil
	case *kmsg.ShareFetchResponse:
		return shared(r), nil
	case *kmsg.ListOffsetsResponse:
		return listed(r), nil
	case *kmsg.OffsetForLeaderEpochResponse:
		return epochEnds(r), nil
	default:
		return nil, nil
	}
}

func produced(r *kmsg.ProduceResponse) (ends []logEnd, err error) {
	for _, t := range r.Topics {
		for _, p := range t.Partitions {
			switch p.ErrorCode {
			case 0:
				// The response does not say how many records the batch has. A batch is on disk as a whole or not at
				// all, so its first offset suffices.
				ends = append(ends, logEnd{t.Topic, t.TopicID, p.Partition, p.BaseOffset + 1})
			case kerr.UnknownServerError.Code:
				return nil, errRefused
			}
		}
	}
	return ends, nil
}

func fetched(r *kmsg.FetchResponse) (ends []logEnd) {
	for _, t := range r.Topics {
		for _, p := range t.Partitions {
			ends = append(ends, logEnd{t.Topic, t.TopicID, p.Partition, p.HighWatermark})
		}
	}
	return ends
}

func shared(r *kmsg.ShareFetchResponse) (ends []logEnd) {
	for _, t := range r.Topics {
		for _, p := range t.Partitions {
			for _, a := range p.AcquiredRecords {
				ends = append(ends, logEnd{id: t.TopicID, partition: p.Partition, end: a.LastOffset + 1})
			}
		}
	}
	return ends
}

func listed(r *kmsg.ListOffsetsResponse) (ends []logEnd) {
	for _, t := range r.Topics {
		for _, p := range t.Partitions {
			ends = append(ends, logEnd{topic: t.Topic, partition: p.Partition, end: p.Offset})
			for _, old := range p.OldStyleOffsets {
				ends = append(ends, logEnd{topic: t.Topic, partition: p.Partition, end: old})
			}
		}
	}
	return ends
}

func epochEnds(r *kmsg.OffsetForLeaderEpochResponse) (ends []logEnd) {
	for _, t := range r.Topics {
		for _, p := range t.Partitions {
			ends = append(ends, logEnd{topic: t.Topic, partition: p.Partition, end: p.EndOffset})
		}
	}
	return ends
}
