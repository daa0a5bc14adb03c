package tools

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/fence"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// recommendation is the limit or value of a broker's setting. docker/kafka/start.sh follows it.
type recommendation struct {
	name string
	max  int64  // a number must not be above; 0 if the setting is not a number
	is   string // the value that it must have, if max is 0
	why  string
}

// recommendations returns the settings that determine how long the loss of a broker or controller stops the venue, and
// that no acknowledged record is lost.
func recommendations() []recommendation {
	return []recommendation{
		{name: "broker.session.timeout.ms", max: 2000, why: "a lost broker is replaced only after it"},
		{name: "broker.heartbeat.interval.ms", max: 300, why: "a broker's session must be longer than six of them"},
		{name: "controller.quorum.fetch.timeout.ms", max: 1000, why: "a lost controller is replaced only after it"},
		{name: "controller.quorum.election.timeout.ms", max: 500, why: "an election of the controller takes as long"},
		{name: "replica.lag.time.max.ms", max: 5000, why: "a replica that hangs holds up every write for as long"},
		{name: "replica.socket.timeout.ms", max: 3000, why: "a follower whose connection to the leader hangs takes as long to make another"},
		{name: "unclean.leader.election.enable", is: "false", why: "a leader that lacks records loses what was acknowledged"},
		{name: "auto.create.topics.enable", is: "false", why: "a wrong topic prefix would make new journals"},
	}
}

// heartbeats is the minimum number of heartbeats in a broker's session: with fewer, live brokers on a busy machine are
// fenced.
const heartbeats = 6

// judgeBrokers checks the settings of every broker, and whether brokers are missing. The settings of dedicated
// controllers cannot be read through the brokers.
func (d *diagnosis) judgeBrokers(brokers []journal.BrokerSettings, controllers []int32, replication []journal.Replication) {
	good := 0
	alive, known := make(map[int32]bool), make(map[int32]bool) // brokers that are registered, and all that have replicas
	for _, b := range brokers {
		alive[b.ID], known[b.ID] = true, true
		check := fmt.Sprintf("broker %d", b.ID)
		if errors.Is(b.Err, kerr.ClusterAuthorizationFailed) {
			d.add(check, isWarning, "its settings were not checked, since --kafka-user may not ask for them: examine as the brokers' administrator")
			continue
		}
		if b.Err != nil {
			d.add(check, isFailed, "%s does not tell its settings: %v", b.Address, b.Err)
			continue
		}
		deviations := deviations(b.Settings)
		if len(deviations) > 0 {
			d.add(check, isWarning, "%s", strings.Join(deviations, "; "))
			continue
		}
		good++
	}
	if good == len(brokers) {
		d.add("brokers", isGood, "%d, with the recommended settings", good)
	}
	switch {
	case len(brokers) < 3:
		d.add("brokers", isWarning, "%d instead of three: the loss of one stops the venue", len(brokers))
	case len(controllers) > 0 && len(controllers) < 3:
		d.add("controllers", isWarning, "%d instead of three: the loss of one stops every election", len(controllers))
	}
	for _, r := range replication {
		for _, id := range r.Replicas {
			if !alive[id] && !known[id] {
				d.add(fmt.Sprintf("broker %d", id), isFailed, "it has replicas and is not registered: it is down or cut off")
			}
			known[id] = true
		}
	}
	for _, id := range controllers {
		if !known[id] {
			d.add("controllers", isNote, "node %d is a dedicated controller, which does not tell its settings here: compare its controller.quorum.* with docker/kafka", id)
		}
	}
}

// deviations returns the settings of a broker that differ from the recommendations.
func deviations(have map[string]string) (out []string) {
	for _, r := range recommendations() {
		value, known := have[r.name]
		if !known {
			continue // an older broker, without the feature that the setting controls
		}
		if r.is != "" {
			if value != r.is {
				out = append(out, fmt.Sprintf("%s is %s, recommended is %s: %s", r.name, value, r.is, r.why))
			}
			continue
		}
		if n, err := strconv.ParseInt(value, 10, 64); err != nil || n > r.max {
			out = append(out, fmt.Sprintf("%s is %s, recommended is at most %d: %s", r.name, value, r.max, r.why))
		}
	}
	session, err1 := strconv.ParseInt(have["broker.session.timeout.ms"], 10, 64)
	heartbeat, err2 := strconv.ParseInt(have["broker.heartbeat.interval.ms"], 10, 64)
	if err1 == nil && err2 == nil && session <= heartbeats*heartbeat {
		out = append(out, fmt.Sprintf("broker.session.timeout.ms is %d, not above %d heartbeats of %d: live brokers of a busy machine are fenced", session, heartbeats, heartbeat))
	}
	return out
}

// judgeReplication checks the number of replicas of the journals, and how many of them are in sync.
func (d *diagnosis) judgeReplication(all []journal.Replication, brokers int) {
	want := min(3, brokers)
	good := 0
	for _, r := range all {
		partition := fmt.Sprintf("%s/%d", r.Topic, r.Partition)
		switch {
		case r.Leader < 0:
			d.add("replication", isFailed, "%s has no leader", partition)
		case r.InSync < len(r.Replicas):
			d.add("replication", isFailed, "%s has %d of %d replicas in sync", partition, r.InSync, len(r.Replicas))
		case len(r.Replicas) < want:
			d.add("replication", isFailed, "%s has %d replicas instead of %d: the loss of a broker stops the venue", partition, len(r.Replicas), want)
		default:
			good++
		}
	}
	if good == len(all) && good > 0 {
		d.add("replication", isGood, "%d partitions, all replicas in sync", good)
	}
}

// judgeTopics reports what CheckTopics returned, a line for each deviation.
func (d *diagnosis) judgeTopics(err error) {
	var wrong *journal.SettingsError
	if !errors.As(err, &wrong) {
		d.add("topics", isFailed, "%v", err)
		return
	}
	for _, deviation := range wrong.Deviations {
		d.add("topics", isFailed, "%s", deviation)
	}
}

// judgeSchema checks the migrations of a database.
func (d *diagnosis) judgeSchema(have, newest int64) {
	switch {
	case have == 0:
		d.add("tables", isFailed, "there are none: run perpetua migrate")
	case have < newest:
		d.add("tables", isFailed, "they are at migration %d of %d: run perpetua migrate", have, newest)
	case have > newest:
		d.add("tables", isWarning, "they are at migration %d, and this build knows %d: a newer version made them", have, newest)
	default:
		d.add("tables", isGood, "at migration %d", have)
	}
}

const (
	// clockTolerance is the largest accepted difference between clocks.
	clockTolerance = time.Second
	// clockLimit is the largest error of a node's clock with which the node may own a journal.
	clockLimit = time.Minute
)

// judgeClock checks the difference between Postgres's clock and this machine's.
func (d *diagnosis) judgeClock(ahead time.Duration) {
	apart := ahead.Abs().Round(time.Millisecond)
	switch {
	case apart > clockLimit:
		d.add("clock", isFailed, "this machine's and Postgres's are %v apart: no node here owns a journal without --accept-clock", apart)
	case apart > clockTolerance:
		d.add("clock", isWarning, "this machine's and Postgres's are %v apart", apart)
	default:
		d.add("clock", isGood, "this machine's and Postgres's agree")
	}
}

// judgeClockOfLog checks how far the time of a log's last record is ahead of this machine's clock.
func (d *diagnosis) judgeClockOfLog(name string, ahead time.Duration) {
	ahead = ahead.Round(time.Millisecond)
	if ahead > clockLimit {
		d.add("clock", isFailed, "the last record of %s is %v ahead of this machine's clock: no node here owns the journal without --accept-clock", name, ahead)
		return
	}
	d.add("clock", isWarning, "the last record of %s is %v ahead of this machine's clock", name, ahead)
}

// manyRecords is the number of records that the read models may be behind a log without a warning.
const manyRecords = 4096

// judgeRows checks how far the read models of a journal are behind its tip.
func (d *diagnosis) judgeRows(name string, tip int64, known []record.Position, err error) {
	check := "read models " + name
	at := highest(known)
	behind := tip - at
	switch {
	case err != nil:
		d.add(check, isFailed, "%v", err)
	case at < 0:
		d.add(check, isWarning, "they are empty, %d records behind: does a projector run?", tip+1)
	case behind > manyRecords:
		d.add(check, isWarning, "at %v, %d records behind: does a projector run?", record.LogPosition{Journal: name, Sequence: at}, behind)
	default:
		d.add(check, isGood, "at %v, %d records behind", record.LogPosition{Journal: name, Sequence: at}, max(0, behind))
	}
}

// judgeWitnesses checks the positions of a journal's witnesses.
func (d *diagnosis) judgeWitnesses(name string, tip int64, known []record.Position, err error) {
	check := "witnesses " + name
	switch {
	case err != nil:
		d.add(check, isFailed, "%v", err)
	case len(known) == 0:
		d.add(check, isWarning, "there are none: a log that loses its last records would not be noticed")
	default:
		at := highest(known)
		d.add(check, isGood, "%d, the newest at %v, %d records behind", len(known), record.LogPosition{Journal: name, Sequence: at}, max(0, tip-at))
	}
}

// judgeFence compares a fence with the location of this log.
func (d *diagnosis) judgeFence(f fence.Fence, location string, founded bool, err error, command string) {
	const check = "fence"
	switch {
	case errors.Is(err, fence.ErrNone):
		d.add(check, isWarning, "none in the key store, although the log has records: is it the key store of this venue? A follower has no fence. "+
			"The first node that starts creates the fence, if the store has the key of an owner in the log. If all were lost: "+
			settings.TakeOver+" --fence-lost")
	case err != nil:
		d.add(check, isFailed, "it cannot be read: %v", err)
	case !founded:
		d.add(check, isNote, "none yet: the first node that starts creates it")
	case f.Location != location:
		d.add(check, isWarning, "this venue is fenced: epoch %d is of the venue %s with its log at %s, and this log is at %s. "+
			"To have this one act in place of the other: %s", f.Epoch, f.Venue, f.Location, location, command)
	case f.Settling:
		d.add(check, isWarning, "a take-over by this venue, to epoch %d, has not ended. If nobody runs it: %s", f.Epoch, command)
	default:
		d.add(check, isGood, "it is this venue's: epoch %d, venue %s, log at %s", f.Epoch, f.Venue, f.Location)
	}
}

// highest returns the highest sequence, −1 for none.
func highest(known []record.Position) int64 {
	if len(known) == 0 {
		return -1
	}
	return slices.MaxFunc(known, func(a, b record.Position) int { return int(min(1, max(-1, a.Sequence-b.Sequence))) }).Sequence
}

const (
	diskLow   = 1 << 30 // free bytes below which a node may soon fail
	diskShort = 10      // percentage of free space below which an operator should free some
)

// judgeDisk checks the space on a disk, in bytes.
func (d *diagnosis) judgeDisk(folder string, free, total uint64) {
	room := fmt.Sprintf("%.1f of %.1f GiB free for %s", float64(free)/(1<<30), float64(total)/(1<<30), folder)
	switch {
	case free < diskLow:
		d.add("disk", isFailed, "%s: a node that cannot write ends", room)
	case total > 0 && free/(total/100+1) < diskShort:
		d.add("disk", isWarning, "%s", room)
	default:
		d.add("disk", isGood, "%s", room)
	}
}

// mostFiles is the number of missing or damaged files that a finding names at most.
const mostFiles = 20

// judgeFiles judges the files that a catalog or a manifest names. late says that the time ran out before the last one. No files
// add no finding.
func (d *diagnosis) judgeFiles(check string, is blob.Checked, err error, late bool) {
	switch wrong := len(is.Wrong); {
	case wrong > 0:
		named, rest := is.Wrong, ""
		if wrong > mostFiles {
			named, rest = named[:mostFiles], fmt.Sprintf("; and %d more", wrong-mostFiles)
		}
		d.add(check, isFailed, "%d of the %d files are missing or damaged (%d were read): %s%s", wrong, is.Blobs, is.Read, strings.Join(named, "; "), rest)
	case err != nil && late:
		d.add(check, isWarning, "only %d of the %d files were read in %v; these are not damaged", is.Read, is.Blobs, chainWithin)
	case err != nil:
		d.add(check, isFailed, "%v", err)
	case is.Blobs > 0:
		d.add(check, isGood, "all %d files have the bytes of their hashes", is.Blobs)
	}
}

// nearestFolder returns the folder, or the nearest one above it that exists.
func nearestFolder(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	for {
		about, err := os.Stat(dir)
		switch {
		case err == nil && about.IsDir():
			return dir, nil
		case err == nil:
			return dir, fmt.Errorf("%s is no folder", dir)
		case !errors.Is(err, fs.ErrNotExist) || dir == filepath.Dir(dir):
			return dir, err
		}
		dir = filepath.Dir(dir)
	}
}

// diskSpace returns the free and total bytes of the disk that a folder is on.
func diskSpace(folder string) (free, total uint64, err error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(folder, &s); err != nil {
		return 0, 0, err
	}
	return s.Bavail * uint64(s.Bsize), s.Blocks * uint64(s.Bsize), nil
}
