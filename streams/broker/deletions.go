package broker

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/perpetua-exchange/perpetua/streams/base"
)

// deletions decides which requests to delete records kfake carries out: those below the offset in trim.json. It reads the file
// for each request and keeps no copy, because the file is deleted with its topic.
//
// trim.json is written while kfake waits for the decision about the request that deletes the segments. So the topic
// can't be deleted, and created again, between the file and the deletion. It might be before that, after Trim has checked
// the log: then the request to delete the topic has dropped the plan.
type deletions struct {
	dir     string
	written func() // called after trim.json was written, if not nil; for tests

	mu    sync.Mutex
	plans map[*trimPlan]struct{}
}

// trimPlan is a trim that Trim is checking or carrying out.
type trimPlan struct {
	at   topicPartition
	trim base.Trim

	ready bool // the log was checked
	err   error
}

var errMeanwhile = errors.New("a topic was deleted meanwhile, perhaps this one; nothing was trimmed")

func newDeletions(dir string, written func()) *deletions {
	return &deletions{dir: dir, written: written, plans: make(map[*trimPlan]struct{})}
}

// plan begins a trim. The caller MUST drop it in the end, and MUST check the log only after plan returned.
func (d *deletions) plan(at topicPartition, t base.Trim) *trimPlan {
	p := &trimPlan{at: at, trim: t}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.plans[p] = struct{}{}
	return p
}

func (d *deletions) drop(p *trimPlan) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.plans, p)
}

// dropAll makes the trims in progress fail, because a topic is about to be deleted.
func (d *deletions) dropAll() {
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.plans)
}

// carryOut sends kfake the request that deletes the records below an offset. The log MUST have been checked.
func (d *deletions) carryOut(ctx context.Context, client *kgo.Client, p *trimPlan, start int64) error {
	d.mu.Lock()
	p.ready = true
	d.mu.Unlock()
	offsets := make(kadm.Offsets)
	offsets.AddOffset(p.at.topic, p.at.partition, start, -1)
	deleted, err := kadm.NewClient(client).DeleteRecords(ctx, offsets)
	if err == nil {
		err = deleted.Error()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	_, planned := d.plans[p]
	switch {
	case err != nil && p.err != nil:
		return p.err
	case err != nil && !planned:
		return errMeanwhile
	}
	return err
}

// allows reports whether kfake may delete the records below an offset. It writes trim.json if a plan allows that.
func (d *deletions) allows(at topicPartition, offset int64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	dir := filepath.Join(d.dir, "partitions", at.folder())
	old, err := readTrim(dir)
	if err != nil || offset < 0 {
		return false
	}
	if old != nil && offset <= old.Offset {
		return true
	}
	for p := range d.plans {
		if p.ready && p.at == at && offset <= p.trim.Offset {
			p.err = d.write(dir, old, p.trim)
			return p.err == nil
		}
	}
	return false
}

// write writes trim.json before the first segment is deleted: after a crash the log then begins below the offset in it, even
// if the disk has deleted the segments in another order.
func (d *deletions) write(dir string, old *base.Trim, t base.Trim) error {
	if old != nil {
		if why := old.Base.Contradicts(t.Base); why != "" {
			return fmt.Errorf("the log was trimmed before at another base: %s", why)
		}
	}
	if err := base.WriteFile(filepath.Join(dir, trimFile), append(t.JSON(), '\n')); err != nil {
		return err
	}
	if d.written != nil {
		d.written()
	}
	return nil
}

// control has the cluster ask d about every request that deletes records or topics. Records that are deleted without
// trim.json would leave a log that the next start refuses.
func (d *deletions) control(cluster *kfake.Cluster) {
	cluster.ControlKey(kmsg.DeleteTopics.Int16(), func(kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		d.dropAll()
		return nil, nil, false
	})
	cluster.ControlKey(kmsg.DeleteRecords.Int16(), func(r kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		request, ok := r.(*kmsg.DeleteRecordsRequest)
		if !ok {
			return nil, nil, false
		}
		allowed := true
		response := request.ResponseKind().(*kmsg.DeleteRecordsResponse)
		for _, topic := range request.Topics {
			refused := kmsg.NewDeleteRecordsResponseTopic()
			refused.Topic = topic.Topic
			for _, p := range topic.Partitions {
				allowed = allowed && d.allows(topicPartition{topic.Topic, p.Partition}, p.Offset)
				one := kmsg.NewDeleteRecordsResponseTopicPartition()
				one.Partition, one.ErrorCode = p.Partition, kerr.PolicyViolation.Code
				refused.Partitions = append(refused.Partitions, one)
			}
			response.Topics = append(response.Topics, refused)
		}
		if allowed {
			return nil, nil, false
		}
		return response, nil, true
	})
}
