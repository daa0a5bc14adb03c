package blob

import (
	"sync"
	"time"
)

// countSteps is the number of steps in which the time without progress of a store is counted. While this process is stopped, or the
// machine has no time for it, a store cannot answer. However long that takes, it counts as one step.
const countSteps = 8

// countdown calls a function after a duration, unless it is stopped or restarted before. It is safe for concurrent use.
type countdown struct {
	step time.Duration
	over func()

	mu    sync.Mutex
	left  int // steps; 0 after the end
	timer *time.Timer
}

// startCountdown starts a countdown. over must not call it.
func startCountdown(d time.Duration, over func()) *countdown {
	c := &countdown{step: d / countSteps, over: over, left: countSteps}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timer = time.AfterFunc(c.step, c.tick)
	return c
}

func (c *countdown) tick() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left == 0 { // stopped while the timer fired
		return
	}
	if c.left--; c.left == 0 {
		c.over()
		return
	}
	c.timer.Reset(c.step)
}

// restart begins the countdown again, unless it has ended.
func (c *countdown) restart() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left > 0 {
		c.left = countSteps
		c.timer.Reset(c.step)
	}
}

func (c *countdown) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left = 0
	c.timer.Stop()
}
