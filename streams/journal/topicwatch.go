package journal

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
)

// WatchTopics checks the topics of the journals at intervals until the context ends, as CheckTopics does. An
// administrator may change a topic while a venue runs, and the brokers then delete or refuse records minutes or days
// later. A deviation raises the alarm "topic" of the journal at each check. It is logged when it is found, when it
// changes, and when it is gone. A check that the brokers do not answer changes nothing.
//
// WatchTopics returns the error of a log that has lost its beginning, for which record.Final holds, if two checks in
// succession find it, not counting those without an answer. The records that the brokers acknowledge may then be deleted too.
func (c *Client) WatchTopics(ctx context.Context, every time.Duration, journals ...string) error {
	watches := make([]topicWatch, len(journals))
	for i, name := range journals {
		watches[i] = topicWatch{client: c, journal: name}
		c.cfg.Metrics.beginReader(name)
		c.cfg.Metrics.Alarms.WithLabelValues(name, alarmTopic) // a series that starts with its first count shows no increase
	}
	for {
		if err := wait(ctx, every); err != nil {
			return err
		}
		for i := range watches {
			if err := watches[i].check(ctx); err != nil {
				return err
			}
		}
	}
}

// topicWatch holds the results of the checks of one topic.
type topicWatch struct {
	client  *Client
	journal string
	logged  string // the deviations that were logged last
	lost    bool   // the log was wrong at the last check that was answered
	denied  bool   // the brokers denied the last check, which was logged
}

// check checks the topic once. It returns the error of a log that was also wrong at the check before.
func (w *topicWatch) check(ctx context.Context) error {
	log := w.client.cfg.Logger.With("journal", w.journal, "topic", w.client.Topic(w.journal))
	err := w.client.CheckTopics(ctx, w.journal)
	var wrong *SettingsError
	switch {
	case err == nil:
		if w.logged != "" {
			log.Info("the topic is as it must be again")
		}
		w.logged, w.lost, w.denied = "", false, false
		return nil
	case !errors.As(err, &wrong):
		denied := errors.Is(err, kerr.TopicAuthorizationFailed) || errors.Is(err, kerr.ClusterAuthorizationFailed)
		if denied && !w.denied {
			log.Warn("the topic is not checked: the brokers deny this node's user the operations Describe or DescribeConfigs", "error", err)
		} else {
			log.Debug("the topic can't be checked for now", "error", err)
		}
		w.denied = w.denied || denied
		return nil
	}
	w.client.cfg.Metrics.Alarms.WithLabelValues(w.journal, alarmTopic).Inc()
	if wrong.Log != nil { // at the first check: the second ends the node, perhaps before it is scraped again
		w.client.cfg.Metrics.countFinal(w.journal, wrong.Log)
	}
	if now := strings.Join(wrong.Deviations, "; "); now != w.logged {
		w.logged = now
		log.Error("the topic is not as it must be: set it right, or the brokers may delete or refuse records of the journal",
			"alarm", alarmTopic, "wrong", now)
	}
	again := w.lost
	w.lost, w.denied = wrong.Log != nil, false
	if again {
		return wrong.Log
	}
	return nil
}
