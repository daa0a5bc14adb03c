package journal

import (
	"context"
	"errors"
	"strings"
	"time"
)

// WatchTopics checks the topics of the journals at intervals until the context ends, as CheckTopics does. An
// administrator may change a topic while a venue runs, and the brokers then delete or refuse records minutes or days
// later. A deviation raises the alarm "topic" of the journal at each check. It is logged when it is found, when it
// changes, and when it is gone. A check that the brokers do not answer changes nothing.
//
// WatchTopics returns the error of a log that has lost its beginning, for which record.Final holds, if two checks in
// succession find it. The records that the brokers acknowledge may then be deleted too.
func (c *Client) WatchTopics(ctx context.Context, every time.Duration, journals ...string) error {
	logged := make(map[string]string) // the deviations of each journal
	lost := make(map[string]bool)     // the journals whose log was wrong at the last check
	for {
		if err := wait(ctx, every); err != nil {
			return err
		}
		for _, name := range journals {
			err := c.watchTopic(ctx, name, logged)
			if err != nil && lost[name] {
				return err
			}
			lost[name] = err != nil
		}
	}
}

// watchTopic checks one topic, and compares its deviations with those that were logged.
func (c *Client) watchTopic(ctx context.Context, name string, logged map[string]string) error {
	err := c.CheckTopics(ctx, name)
	var wrong *SettingsError
	switch {
	case err == nil && logged[name] != "":
		delete(logged, name)
		c.cfg.Logger.Info("the topic is as it must be again", "journal", name, "topic", c.Topic(name))
		return nil
	case err == nil:
		return nil
	case !errors.As(err, &wrong):
		c.cfg.Logger.Debug("the topic can't be checked for now", "journal", name, "topic", c.Topic(name), "error", err)
		return nil
	}
	c.cfg.Metrics.Alarms.WithLabelValues(name, alarmTopic).Inc()
	if now := strings.Join(wrong.Deviations, "; "); now != logged[name] {
		logged[name] = now
		c.cfg.Logger.Error("the topic is not as it must be: set it right, or the brokers may delete or refuse records of the journal",
			"alarm", alarmTopic, "journal", name, "wrong", now)
	}
	return wrong.Log
}
